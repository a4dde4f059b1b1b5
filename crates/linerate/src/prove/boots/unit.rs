//! What starts this program after each boot: a unit of systemd that lives as long as the series.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::action::Failure;
use crate::keep::replace;

const NAME: &str = "linerate-boots.service";
const FILE: &str = "/etc/systemd/system/linerate-boots.service";

/// Refuses a host without systemd.
pub(super) fn required() -> Result<(), Failure> {
    if Path::new("/run/systemd/system").is_dir() {
        return Ok(());
    }
    Err(Failure::Refused(
        "systemd does not run here, and nothing else would go on with the series after a boot; nothing was changed"
            .to_owned(),
    ))
}

/// Refuses a folder, or a place of this program, that is not there after a boot, or whose name a unit would read otherwise.
pub(super) fn can_find(folder: &Path) -> Result<(), Failure> {
    /// Folders that are empty after a boot, or often mounted late.
    const LOST: [&str; 4] = ["/tmp", "/run", "/dev/shm", "/home"];
    let program = std::env::current_exe()
        .map_err(|error| Failure::File(format!("cannot find this program: {error}")))?;
    for path in [folder, &program] {
        let name = path.display().to_string();
        let is_lost = LOST.iter().any(|lost| path.starts_with(lost));
        if is_lost || name.contains(['%', '"', '\\', '$']) {
            return Err(Failure::Refused(format!(
                "{name} may not be there after a boot, or a unit would read its name otherwise: use /var/lib for --boots-state and \
                 /usr for linerate; nothing was changed"
            )));
        }
    }
    Ok(())
}

/// Has the series in this folder go on after each boot.
pub(super) fn install(folder: &Path) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::File(format!("cannot find this program: {error}")))?;
    let text = text(
        &program.display().to_string(),
        &folder.display().to_string(),
    );
    let file = Path::new(FILE);
    replace(file, text.as_bytes()).map_err(|error| Failure::cannot("write", file, &error))?;
    systemctl(&["daemon-reload"])
        .and_then(|()| systemctl(&["--quiet", "enable", NAME]))
        .map_err(Failure::File)
}

/// Takes it away, where it is there.
pub(super) fn remove() -> Result<(), String> {
    if !Path::new(FILE).exists() {
        return Ok(());
    }
    systemctl(&["--quiet", "disable", NAME])?;
    fs::remove_file(FILE).map_err(|error| format!("cannot remove {FILE}: {error}"))?;
    systemctl(&["daemon-reload"])
}

/// A process that is killed is started again; the journal bounds how often a run is tried.
fn text(program: &str, folder: &str) -> String {
    format!(
        "[Unit]\n\
         Description=Go on with linerate's alternating boots\n\
         Documentation=man:linerate(1)\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         RequiresMountsFor=\"{folder}\"\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart=\"{program}\" prove --boots-resume --boots-state \"{folder}\"\n\
         Restart=on-failure\n\
         RestartSec=1\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

fn systemctl(words: &[&str]) -> Result<(), String> {
    let command = || format!("systemctl {}", words.join(" "));
    let output = Command::new("systemctl")
        .args(words)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", command()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} failed: {}", command(), said.trim()))
}

/// Restarts the host in good order: into what kexec has loaded, or by its firmware.
pub(super) fn restart(loaded: bool) -> Result<(), String> {
    systemctl(&["--no-block", if loaded { "kexec" } else { "reboot" }])
}
