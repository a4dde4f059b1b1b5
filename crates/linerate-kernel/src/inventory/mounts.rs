//! What is mounted where (`/proc/self/mountinfo`, `proc_pid_mountinfo(5)`).

use linerate_model::block::DeviceNumber;

use super::Root;
use super::blocks::number;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device that files on it report.
    pub device: DeviceNumber,
    /// Where it is mounted.
    pub mounted_on: String,
    /// The file system: `ext4`, `nfs4`.
    pub kind: String,
    /// What was mounted: `/dev/vda1`, `server:/export`.
    pub source: String,
    /// Options of this mount, then those of the file system.
    pub options: Vec<String>,
}

/// All mounts of this process's namespace, the later ones on top.
///
/// # Errors
/// Where `/proc` is not mounted. Lines of another layout are left out.
pub fn mounts(root: &Root) -> Result<Vec<Mount>, String> {
    let text = root.text("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(mount).collect())
}

fn mount(line: &str) -> Option<Mount> {
    // Optional fields end with a hyphen that stands alone.
    let (fields, rest) = line.split_once(" - ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let rest: Vec<&str> = rest.split(' ').collect();
    let [_, _, device, _, mounted_on, options, ..] = fields[..] else {
        return None;
    };
    let [kind, source, more @ ..] = &rest[..] else {
        return None;
    };
    let options = options.split(',');
    let more = more.first().into_iter().flat_map(|more| more.split(','));
    Some(Mount {
        device: number(device)?,
        mounted_on: unescaped(mounted_on),
        kind: (*kind).to_owned(),
        source: unescaped(source),
        options: options.chain(more).map(str::to_owned).collect(),
    })
}

/// Blanks and backslashes are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let octal = match more {
            [a, b, c, ..] if *first == b'\\' => std::str::from_utf8(&[*a, *b, *c])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &more[3..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_optional_fields_it_has() {
        let line = r"36 35 98:0 /mnt1 /mnt/a\040b rw,noatime shared:1 master:2 - ext3 /dev/root rw,errors=continue";
        let mount = mount(line).unwrap();
        assert_eq!(mount.mounted_on, "/mnt/a b");
        assert_eq!((&*mount.kind, &*mount.source), ("ext3", "/dev/root"));
        assert_eq!(mount.device.to_string(), "98:0");
        assert_eq!(mount.options, ["rw", "noatime", "rw", "errors=continue"]);
        let none = super::mount("22 1 0:20 / /proc rw - proc proc rw").unwrap();
        assert_eq!(none.kind, "proc");
        assert_eq!(super::mount("garbage"), None);
    }

    #[test]
    fn this_machine_has_a_root() {
        let mounts = mounts(&Root::of_this_machine()).unwrap();
        assert!(mounts.iter().any(|mount| mount.mounted_on == "/"));
    }
}
