//! `--become`, with a sudo that is a script of this test.

use std::os::unix::fs::PermissionsExt;

use linerate_testing::{Need, skipped};

use super::trouble::executable;
use super::{Children, linerate_by, ran};
use crate::harness::beside;

/// Wants the password `open sesame`, and notes how it was called.
const SUDO: &str = r#"#!/bin/sh
echo "sudo $*" >>"$HOME/calls"
case $1 in
-n) exit 1 ;;
-S) shift ;;
esac
prompt=$2
shift 2
for turn in 1 2 3; do
    printf "%s" "$prompt" >&2
    # One byte at a time, as sudo does: what follows is not sudo's.
    IFS= read -r word || exit 1
    [ "$word" = "open sesame" ] && BECAME=root exec "$@"
    echo "Sorry, try again." >&2
done
exit 1
"#;

#[test]
fn sudo_gets_its_password_over_the_connection_and_nowhere_else() {
    let _beside = beside();
    if linerate_kernel::process::user() != 0 {
        return skipped(Need::Root, "--become", "only root may be another user");
    }
    let children = Children::new();
    let folder = children.home.path().display();
    executable(&children.home.with("sudo", SUDO));
    let via = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups {} PATH={folder}:/usr/bin:/bin sh -c",
        children.environment()
    );
    let password = children.home.with("password", "open sesame\n");
    std::fs::set_permissions(&password, PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = linerate_by(&via, "n[1-2]", "tune status --become");
    command.env("LINERATE_BECOME_PASSWORD_FILE", &password);
    let done = ran(&mut command);
    assert_eq!(done.code(), Some(0), "{}", done.error);
    assert!(done.out.starts_with("n[1-2]:\n"), "{}", done.out);
    let calls = std::fs::read_to_string(children.home.file("calls")).unwrap();
    assert!(calls.contains("agent --stdio"), "{calls}");
    assert!(!calls.contains("sesame"), "{calls}");

    std::fs::write(&password, "wrong\n").unwrap();
    let mut command = linerate_by(&via, "n[1-2]", "tune status --become");
    command.env("LINERATE_BECOME_PASSWORD_FILE", &password);
    let done = ran(&mut command);
    assert_eq!(done.code(), Some(11));
    assert!(
        done.error
            .contains("n[1-2]: sudo asks for a password there: it was refused"),
        "{}",
        done.error
    );

    // No file and no terminal.
    let mut command = linerate_by(&via, "n1", "tune status --become");
    command.env_remove("LINERATE_BECOME_PASSWORD_FILE");
    let mut outside = std::process::Command::new("setsid");
    outside
        .arg("--wait")
        .arg(command.get_program())
        .args(command.get_args());
    let done = ran(&mut outside);
    assert!(
        done.error.contains("there is no terminal to ask for it"),
        "{}",
        done.error
    );
    children.assert_gone("after sudo");
}
