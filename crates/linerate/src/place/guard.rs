//! What restores settings when the process that changed them is gone without having done it: a second process that
//! holds the old values and waits for the end of a pipe.
//!
//! It is in a session of its own, so that Ctrl-C does not reach it, and in the same network namespace. A machine that
//! loses power needs none of it: nothing that is set here outlives the kernel.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::BorrowedFd;
use std::process::{Child, ChildStdin, Stdio};

use linerate_kernel::process;
use linerate_model::tuning::{BlockSetting, InterfaceSetting, Object};
use linerate_tune::live::Live;
use linerate_tune::settings::{Saved, SettingError, Settings};

use crate::action::Failure;
use crate::lab::ourselves;

const READY: &str = "ready\n";
const DONE: &str = "done\n";

/// A process that restores what it was told of, unless it hears that it is not needed.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    tell: Option<ChildStdin>,
}

impl Guard {
    /// Starts it with these old values; it holds them when this returns, and the lock until it ends.
    pub(super) fn start(
        saved: &[(Object, Saved)],
        lock: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::Setting(format!(
                "cannot start the process that restores the settings if this one is killed: {why}; nothing was changed"
            ))
        };
        let mut command = ourselves(["settings-guard"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child =
            process::spawn_detached(&mut command, lock).map_err(|error| failed(&error))?;
        let (Some(mut tell), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"it has no pipes"));
        };
        let text = serde_json::json!(saved).to_string();
        writeln!(tell, "{text}").map_err(|error| failed(&error))?;
        let mut said = String::new();
        BufReader::new(out)
            .read_line(&mut said)
            .map_err(|error| failed(&error))?;
        if said != READY {
            return Err(failed(&"it did not take the old values"));
        }
        Ok(Self {
            child,
            tell: Some(tell),
        })
    }

    /// All is as it was: it has nothing to do.
    pub(super) fn dismiss(mut self) {
        if let Some(mut tell) = self.tell.take() {
            // Where it is gone already, nothing waits that could restore.
            drop(tell.write_all(DONE.as_bytes()));
        }
        drop(self.child.wait());
    }
}

/// Holds old values from standard input until its end, and restores them unless told that it is not needed.
pub(crate) fn stand() -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::Setting(format!("cannot read the old values: {why}"))
    };
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| failed(&error))?;
    let saved: Vec<(Object, Saved)> =
        serde_json::from_str(&line).map_err(|error| failed(&error))?;
    let mut out = std::io::stdout();
    out.write_all(READY.as_bytes())?;
    out.flush()?;
    line.clear();
    // Ends with the process that holds the other end, or its word.
    let told = input.read_line(&mut line);
    if told.is_ok() && line == DONE {
        return Ok(());
    }
    let wrong = restore_all(&mut Live::default(), &saved);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::Setting(wrong.join("; ")))
    }
}

/// Restores what is not as it was, and reads it back; what could not be, and why. Restoring one may upset another or
/// wait for it (new queues, a link's MTU below that of what stands on it), so it is gone over again while that brings
/// more back.
pub(super) fn restore_all(settings: &mut dyn Settings, saved: &[(Object, Saved)]) -> Vec<String> {
    let mut all: Vec<&(Object, Saved)> = saved.iter().rev().collect();
    all.sort_by_key(|(object, _)| rank(object));
    let mut before = None;
    // Ends: each turn but the first leaves less than the one before.
    loop {
        let refused: Vec<Option<SettingError>> = all
            .iter()
            .map(|(object, saved)| restore_one(settings, object, saved))
            .collect();
        let mut left = 0;
        let mut wrong = Vec::new();
        for ((object, saved), refused) in all.iter().zip(refused) {
            let now = settings.save(object);
            if now.as_ref().is_ok_and(|now| now == saved) {
                continue;
            }
            left += 1;
            match (refused, now) {
                (Some(error), _) | (None, Err(error)) => wrong.push(error.to_string()),
                // What the words do not say may have the kernel's own numbers, or move by itself; it was taken.
                (None, Ok(now)) if now.value == saved.value => {}
                (None, Ok(now)) => wrong.push(format!(
                    "{object} was set to {} and reads {}: the kernel or the driver rounded or ignored it",
                    saved.value, now.value
                )),
            }
        }
        if left == 0 || before.is_some_and(|before| left >= before) {
            return wrong;
        }
        before = Some(left);
    }
}

/// Makes a setting what it was, where it is not; why that was refused, where it was.
fn restore_one(
    settings: &mut dyn Settings,
    object: &Object,
    saved: &Saved,
) -> Option<SettingError> {
    if settings.save(object).is_ok_and(|now| now == *saved) {
        return None;
    }
    settings.restore(object, saved).err()
}

/// The order in which settings are made: what makes the queues anew before what is set for each of them.
fn rank(object: &Object) -> usize {
    let setting = match object {
        Object::Interface { setting, .. } => setting,
        Object::Block { setting, .. } => {
            let position = |(each, _): &(BlockSetting, &str)| each == setting;
            return BlockSetting::ALL.iter().position(position).unwrap_or(0);
        }
        Object::Sysctl { .. } | Object::Governor => return 0,
    };
    let position = |(each, _): &(InterfaceSetting, &str)| each == setting;
    InterfaceSetting::ALL
        .iter()
        .position(position)
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn object(interface: &str, setting: InterfaceSetting) -> Object {
        Object::Interface {
            interface: interface.to_owned(),
            setting,
        }
    }

    fn saved(value: &str, detail: &str) -> Saved {
        Saved {
            value: value.to_owned(),
            detail: detail.to_owned(),
        }
    }

    /// A card whose queues are made anew with its channels or its MTU, or three links that stand on one another.
    struct Links {
        values: BTreeMap<String, Saved>,
        /// It takes every value of this and stays as it is.
        deaf: Option<Object>,
        restored: usize,
    }

    impl Links {
        fn of<'a>(all: impl IntoIterator<Item = &'a (Object, Saved)>) -> Self {
            let values = all.into_iter();
            Self {
                values: values
                    .map(|(object, saved)| (object.to_string(), saved.clone()))
                    .collect(),
                deaf: None,
                restored: 0,
            }
        }

        fn mtu(&self, interface: &str) -> Option<u32> {
            let mtu = object(interface, InterfaceSetting::Mtu).to_string();
            self.values.get(&mtu)?.value.parse().ok()
        }
    }

    impl Settings for Links {
        fn read(&mut self, object: &Object) -> Result<String, SettingError> {
            Ok(self.save(object)?.value)
        }

        fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
            Ok(self.values[&object.to_string()].clone())
        }

        fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
            self.restore(object, &saved(value, ""))
        }

        fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
            self.restored += 1;
            if self.deaf.as_ref() == Some(object) {
                return Ok(());
            }
            let Object::Interface { interface, setting } = object else {
                panic!("{object} is not of these links");
            };
            let below = match interface.as_str() {
                "top" => self.mtu("middle"),
                "middle" => self.mtu("bottom"),
                _ => None,
            };
            let too_large = |below: u32| saved.value.parse::<u32>().unwrap() > below;
            if *setting == InterfaceSetting::Mtu && below.is_some_and(too_large) {
                return Err(SettingError {
                    doing: "restore",
                    object: object.clone(),
                    value: Some(saved.value.clone()),
                    reason: "Numerical result out of range".to_owned(),
                });
            }
            self.values.insert(object.to_string(), saved.clone());
            if matches!(setting, InterfaceSetting::Channels | InterfaceSetting::Mtu) {
                for value in self
                    .values
                    .iter_mut()
                    .filter(|(key, _)| key.contains("qdisc"))
                {
                    value.1.detail = "defaults".to_owned();
                }
            }
            Ok(())
        }
    }

    #[test]
    fn new_queues_get_their_disciplines_options_again_in_whatever_order_they_were_saved() {
        use InterfaceSetting as S;
        for setting in [S::Channels, S::Mtu] {
            let mut old = [
                (object("card", setting), saved("4", "")),
                (object("card", S::Qdisc), saved("fq", "limit 20000")),
            ];
            for _ in 0..2 {
                let mut links = Links::of(&[
                    (object("card", setting), saved("8", "")),
                    (object("card", S::Qdisc), saved("fq", "defaults")),
                ]);
                assert_eq!(restore_all(&mut links, &old), Vec::<String>::new());
                assert_eq!(links.values, Links::of(&old).values, "{setting:?}");
                old.reverse();
            }
        }
    }

    #[test]
    fn mtus_of_links_that_stand_on_one_another_come_back_in_whatever_order_they_were_saved() {
        let old = ["bottom", "middle", "top"]
            .map(|link| (object(link, InterfaceSetting::Mtu), saved("9000", "")));
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let old = order.map(|at| old[at].clone());
            let mut links = Links::of(&old);
            for value in links.values.values_mut() {
                *value = saved("1500", "");
            }
            assert_eq!(restore_all(&mut links, &old), Vec::<String>::new());
            assert_eq!(links.values, Links::of(&old).values, "{order:?}");
        }
    }

    #[test]
    fn what_takes_an_old_value_and_ignores_it_is_named() {
        let old =
            ["bottom", "card"].map(|link| (object(link, InterfaceSetting::Mtu), saved("1500", "")));
        let mut links = Links::of(&old);
        for value in links.values.values_mut() {
            *value = saved("9000", "");
        }
        links.deaf = Some(old[1].0.clone());
        assert_eq!(
            restore_all(&mut links, &old),
            [
                "mtu of card was set to 1500 and reads 9000: the kernel or the driver rounded or ignored it"
            ]
        );
        assert_eq!(links.mtu("bottom"), Some(1500));
        assert_eq!(links.restored, 3, "it was tried twice");
    }
}
