//! The settings of the running kernel, in the calling thread's network namespace.
//!
//! What is wanted and what is there are in the same words as in a plan: both come from the facts of the interface.
//! What the words do not say is kept in [`Saved::detail`]: the disciplines with their options, each bit of a group of
//! features, each CPU's governor.

mod advice;
mod interface;
mod steering;
mod words;

use linerate_kernel::KernelError;
use linerate_kernel::inventory::{self, Root, RunningKernel};
use linerate_kernel::setting;
use linerate_model::host::Interface;
use linerate_model::tuning::Object;

use crate::block::Device;
use crate::dirty;
use crate::plan::value_of;
use crate::settings::{Saved, SettingError, Settings};
use advice::{advised, libc_codes};
use words::{Outcome, numbered, pairs_text};

/// The running kernel.
#[derive(Debug)]
pub struct Live {
    root: Root,
}

impl Default for Live {
    fn default() -> Self {
        Self::below(Root::of_this_machine())
    }
}

impl Live {
    /// The running kernel's interfaces, with a folder that stands for `/` in the place of its files.
    pub fn below(root: Root) -> Self {
        Self { root }
    }
}

impl Settings for Live {
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        let read = match object {
            Object::Sysctl { key } => {
                setting::sysctl(&self.root, key).map_err(|error| advised(&error, object))
            }
            Object::Interface { interface, setting } => self
                .interface(interface)
                .and_then(|interface| value_of(&interface, *setting)),
            Object::Block { device, setting } => self.block(device).read(*setting),
            Object::Governor => self.governors().map(|all| {
                let mut names: Vec<String> = all.into_iter().map(|(_, name)| name).collect();
                names.sort_unstable();
                names.dedup();
                names.join(", ")
            }),
        };
        read.map_err(SettingError::of("read", object, None))
    }

    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        let value = self.read(object)?;
        let detail = match object {
            Object::Sysctl { key } => dirty::detail(key, &value, |key| {
                setting::sysctl(&self.root, key).map_err(|error| advised(&error, object))
            }),
            Object::Block { device, setting } => self.block(device).detail(*setting),
            Object::Interface { interface, setting } => self.detail(object, interface, *setting),
            Object::Governor => self.governors().map(|all| {
                let one = |(cpu, name): (u32, String)| (cpu.to_string(), name);
                pairs_text(all.into_iter().map(one))
            }),
        };
        let detail = detail.map_err(SettingError::of("save", object, None))?;
        Ok(Saved { value, detail })
    }

    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        let written = match object {
            Object::Sysctl { key } => setting::set_sysctl(&self.root, key, value)
                .map_err(|error| self.sysctl_reason(&error, object, key)),
            Object::Interface { interface, setting } => {
                self.write_interface(object, interface, *setting, value)
            }
            Object::Block { device, setting } => self.block(device).write(*setting, value),
            Object::Governor => self.governors().and_then(|all| {
                let all = all.into_iter().map(|(cpu, _)| (cpu, value.to_owned()));
                self.set_governors(object, all)
            }),
        };
        written.map_err(SettingError::of("set", object, Some(value)))
    }

    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        let restored = match object {
            Object::Sysctl { key } => {
                let (key, value) = dirty::written_back(key, saved);
                setting::set_sysctl(&self.root, key, value)
                    .map_err(|error| self.sysctl_reason(&error, object, key))
            }
            Object::Block { device, setting } => self.block(device).restore(*setting, saved),
            Object::Interface { interface, setting } => {
                self.restore_interface(object, interface, *setting, saved)
            }
            // A CPU that is gone has nothing to restore.
            Object::Governor => numbered(&saved.detail).and_then(|all| {
                let there = self.governors()?;
                let is_there = |cpu: u32| there.iter().any(|(one, _)| *one == cpu);
                let all = all.into_iter().filter(|(cpu, _)| is_there(*cpu));
                self.set_governors(object, all)
            }),
        };
        restored.map_err(SettingError::of("restore", object, Some(&saved.value)))
    }
}

impl Live {
    fn block<'a>(&'a self, device: &'a str) -> Device<'a> {
        Device::new(&self.root, device)
    }

    fn interface(&self, name: &str) -> Outcome<Interface> {
        inventory::interface(&self.root, &RunningKernel, name)
            .map_err(|error| format!("the kernel does not list interfaces: {error}"))?
            .ok_or_else(|| format!("there is no interface {name}"))
    }

    fn governors(&self) -> Outcome<Vec<(u32, String)>> {
        let all = setting::governors(&self.root);
        if all.is_empty() {
            return Err("the kernel scales no frequency here (no cpufreq)".to_owned());
        }
        Ok(all.into_iter().collect())
    }

    /// All that can be set are, whatever fails on the way.
    fn set_governors(
        &self,
        object: &Object,
        all: impl Iterator<Item = (u32, String)>,
    ) -> Outcome<()> {
        let set = |(cpu, name): (u32, String)| {
            setting::set_governor(&self.root, cpu, &name).map_err(|error| advised(&error, object))
        };
        let failed: Vec<String> = all.filter_map(|one| set(one).err()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        Err(failed.join("; "))
    }

    /// `ENOENT` of a key that is there is about the algorithm that it names.
    fn sysctl_reason(&self, error: &KernelError, object: &Object, key: &str) -> String {
        let module = match key {
            "net.ipv4.tcp_congestion_control" => "tcp_",
            "net.core.default_qdisc" => "sch_",
            _ => return advised(error, object),
        };
        if error.code() != Some(libc_codes::ENOENT) || setting::sysctl(&self.root, key).is_err() {
            return advised(error, object);
        }
        let has = setting::sysctl(&self.root, "net.ipv4.tcp_available_congestion_control");
        let has = match (key, has) {
            ("net.ipv4.tcp_congestion_control", Ok(has)) => format!("; it has {has}"),
            _ => String::new(),
        };
        format!("this kernel has none of this name{has}; a module {module}… may have to be loaded")
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::tuning::InterfaceSetting;

    use super::*;

    #[test]
    fn what_cannot_be_read_says_what_and_why() {
        let mut live = Live::default();
        let object = Object::Interface {
            interface: "no-such-link".to_owned(),
            setting: InterfaceSetting::Mtu,
        };
        assert_eq!(
            live.read(&object).unwrap_err().to_string(),
            "cannot read mtu of no-such-link: there is no interface no-such-link"
        );
        let error = live.write(&object, "1500").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot set mtu of no-such-link = 1500: "),
            "{error}"
        );
        assert!(
            live.write(&object, "many")
                .unwrap_err()
                .to_string()
                .contains("not a whole number")
        );
        let key = Object::Sysctl {
            key: "net.ipv4.tcp_nothing".to_owned(),
        };
        let error = live.save(&key).unwrap_err().to_string();
        assert!(error.contains("has no key net.ipv4.tcp_nothing"), "{error}");
    }

    #[test]
    fn loopback_is_read_in_the_words_of_a_plan() {
        let mut live = Live::default();
        let mut read = |setting| {
            let interface = "lo".to_owned();
            live.read(&Object::Interface { interface, setting })
        };
        assert_eq!(read(InterfaceSetting::Tso).unwrap(), "on");
        assert!(read(InterfaceSetting::Mtu).unwrap().parse::<u32>().is_ok());
        let rings = read(InterfaceSetting::RxRing).unwrap_err().to_string();
        assert!(rings.ends_with("the driver does not say"), "{rings}");
    }
}
