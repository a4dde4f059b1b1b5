//! Settings as files below a folder that stands for `/`: what /proc/sys and /sys have as files. What needs netlink or
//! ethtool is refused; [`crate::live`] has it for the running kernel. No link leads out of the folder.

use std::collections::BTreeMap;
use std::io;

use linerate_kernel::inventory::Root;
use linerate_kernel::setting::sysctl_path;
use linerate_model::tuning::{InterfaceSetting, Object};

use crate::block::Device;
use crate::dirty;
use crate::settings::{Saved, SettingError, Settings};

const CPUS: &str = "sys/devices/system/cpu";

/// The folder.
#[derive(Debug, Clone)]
pub struct Rooted(Root);

impl Rooted {
    /// The files below a folder that stands for `/`.
    pub fn below(root: Root) -> Self {
        Self(root)
    }

    /// Each file that holds a governor, with its name below the folder of CPUs.
    fn governors(&self) -> Result<BTreeMap<String, String>, String> {
        let mut found = BTreeMap::new();
        let path = format!("{CPUS}/cpufreq");
        let policies = self.0.directory(&path).and_then(|folder| folder.names());
        let policies = policies.map_err(|error| {
            format!(
                "there is no CPU frequency scaling here ({}: {error})",
                self.0.path(&path).display()
            )
        })?;
        for name in policies {
            let Ok(path) = governor(&name) else { continue };
            match self.0.whole_text(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.reason(&path, &error)),
                Ok(text) => drop(found.insert(name, single_blanks(&text))),
            }
        }
        if found.is_empty() {
            return Err("there is no CPU frequency scaling here".to_owned());
        }
        Ok(found)
    }

    fn value(&self, object: &Object) -> Result<String, String> {
        if *object == Object::Governor {
            let mut names: Vec<String> = self.governors()?.into_values().collect();
            names.sort_unstable();
            names.dedup();
            return Ok(names.join(", "));
        }
        if let Object::Block { device, setting } = object {
            return Device::new(&self.0, device).read(*setting);
        }
        let path = file(object)?;
        let text = self.0.whole_text(&path);
        text.map(|text| single_blanks(&text))
            .map_err(|error| self.reason(&path, &error))
    }

    fn set(&self, object: &Object, value: &str) -> Result<(), String> {
        if let Object::Block { device, setting } = object {
            return Device::new(&self.0, device).write(*setting, value);
        }
        if *object != Object::Governor {
            return self.put(&file(object)?, value);
        }
        for policy in self.governors()?.keys() {
            self.put(&governor(policy)?, value)?;
        }
        Ok(())
    }

    fn put_back(&self, object: &Object, saved: &Saved) -> Result<(), String> {
        match object {
            Object::Block { device, setting } => {
                return Device::new(&self.0, device).restore(*setting, saved);
            }
            Object::Sysctl { key } => {
                let (key, value) = dirty::written_back(key, saved);
                let key = key.to_owned();
                return self.put(&file(&Object::Sysctl { key })?, value);
            }
            Object::Interface { .. } => return self.put(&file(object)?, &saved.value),
            Object::Governor => {}
        }
        let policies: BTreeMap<String, String> = serde_json::from_str(&saved.detail)
            .map_err(|error| format!("what was saved is not understood: {error}"))?;
        for (policy, value) in &policies {
            self.put(&governor(policy)?, value)?;
        }
        Ok(())
    }

    fn put(&self, path: &str, value: &str) -> Result<(), String> {
        let written = self.0.write(path, value);
        written.map_err(|error| self.reason(path, &error))
    }

    fn reason(&self, path: &str, error: &io::Error) -> String {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => " (root may)",
            io::ErrorKind::NotFound => " (the kernel or its module does not have it)",
            io::ErrorKind::InvalidInput => " (the kernel does not take this value)",
            _ => "",
        };
        format!("{}: {error}{advice}", self.0.path(path).display())
    }
}

impl Settings for Rooted {
    fn read(&mut self, object: &Object) -> Result<String, SettingError> {
        self.value(object)
            .map_err(SettingError::of("read", object, None))
    }

    fn save(&mut self, object: &Object) -> Result<Saved, SettingError> {
        let detail = |value: &str| match object {
            Object::Governor => {
                serde_json::to_string(&self.governors()?).map_err(|error| error.to_string())
            }
            Object::Sysctl { key } => dirty::detail(key, value, |key| {
                let key = key.to_owned();
                self.value(&Object::Sysctl { key })
            }),
            Object::Block { device, setting } => Device::new(&self.0, device).detail(*setting),
            Object::Interface { .. } => Ok(String::new()),
        };
        let saved = self.value(object).and_then(|value| {
            let detail = detail(&value)?;
            Ok(Saved { value, detail })
        });
        saved.map_err(SettingError::of("save", object, None))
    }

    fn write(&mut self, object: &Object, value: &str) -> Result<(), SettingError> {
        self.set(object, value)
            .map_err(SettingError::of("set", object, Some(value)))
    }

    fn restore(&mut self, object: &Object, saved: &Saved) -> Result<(), SettingError> {
        self.put_back(object, saved).map_err(SettingError::of(
            "restore",
            object,
            Some(&saved.value),
        ))
    }
}

/// The file that is a setting, by its path from `/`.
fn file(object: &Object) -> Result<String, String> {
    match object {
        Object::Sysctl { key } => sysctl_path(key).ok_or_else(|| "that is not a key".to_owned()),
        Object::Interface { interface, setting } => {
            let name = match setting {
                InterfaceSetting::Mtu => "mtu",
                InterfaceSetting::Txqueuelen => "tx_queue_len",
                _ => return Err("no file contains it, only a running kernel".to_owned()),
            };
            if interface.contains('/') || interface.starts_with('.') {
                return Err("that is not an interface name".to_owned());
            }
            Ok(format!("sys/class/net/{interface}/{name}"))
        }
        Object::Governor | Object::Block { .. } => Err("no single file contains it".to_owned()),
    }
}

/// The file of a policy's governor, by its path from `/`.
fn governor(policy: &str) -> Result<String, String> {
    let digits = policy.strip_prefix("policy").unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{policy}' is not a cpufreq policy"));
    }
    Ok(format!("{CPUS}/cpufreq/{policy}/scaling_governor"))
}

fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_paths_and_nothing_leaves_the_folder() {
        assert_eq!(
            sysctl_path("net.ipv4.conf.eth0/100.rp_filter").unwrap(),
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        );
        for wrong in ["", "net..core", "net.//.core", ".net", "a.\0"] {
            assert_eq!(sysctl_path(wrong), None, "{wrong:?}");
        }
        let mut rooted = Rooted::below(Root::of_this_machine());
        for name in ["../../etc", ".", "a/b"] {
            let object = Object::Interface {
                interface: name.to_owned(),
                setting: InterfaceSetting::Mtu,
            };
            let error = rooted.write(&object, "9000").unwrap_err();
            assert!(
                error.to_string().contains("not an interface name"),
                "{error}"
            );
        }
    }
}
