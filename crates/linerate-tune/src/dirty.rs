//! Limits of dirty pages: of each the kernel keeps bytes or a share of the memory. Writing one sets the other to 0
//! (mm/page-writeback.c, `dirty_bytes_handler`), and bytes take no 0, so that an old value comes back by the key that
//! was in force.

use crate::settings::Saved;

const PAIRS: [[&str; 2]; 2] = [
    ["vm.dirty_bytes", "vm.dirty_ratio"],
    ["vm.dirty_background_bytes", "vm.dirty_background_ratio"],
];

/// The key that says the same in the other unit.
fn other(key: &str) -> Option<&'static str> {
    PAIRS.iter().find_map(|[bytes, ratio]| match key {
        _ if key == *bytes => Some(*ratio),
        _ if key == *ratio => Some(*bytes),
        _ => None,
    })
}

/// What has to be saved beside a value: the other key's, where this one is not in force.
pub(crate) fn detail(
    key: &str,
    value: &str,
    read: impl FnOnce(&str) -> Result<String, String>,
) -> Result<String, String> {
    match other(key) {
        Some(other) if value == "0" => read(other),
        _ => Ok(String::new()),
    }
}

/// The key and the value that bring back what was saved.
pub(crate) fn written_back<'a>(key: &'a str, saved: &'a Saved) -> (&'a str, &'a str) {
    match other(key) {
        Some(other) if saved.value == "0" && !["", "0"].contains(&saved.detail.as_str()) => {
            (other, &saved.detail)
        }
        _ => (key, &saved.value),
    }
}

/// Refuses what leaves no limit, and both keys of a pair.
pub(crate) fn possible(
    key: &str,
    value: &str,
    is_wished: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let Some(other) = other(key) else {
        return Ok(());
    };
    if value == "0" {
        return Err(format!("0 would leave no limit; set {other} instead"));
    }
    if is_wished(other) {
        return Err(format!(
            "{key} and {other} are one limit, and setting one makes the other 0; set one of them"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_force_comes_back_by_the_other_key() {
        let saved = |value: &str, detail: &str| Saved {
            value: value.to_owned(),
            detail: detail.to_owned(),
        };
        let detail = detail("vm.dirty_bytes", "0", |key| {
            assert_eq!(key, "vm.dirty_ratio");
            Ok("20".to_owned())
        });
        let was = saved("0", &detail.unwrap());
        assert_eq!(
            written_back("vm.dirty_bytes", &was),
            ("vm.dirty_ratio", "20")
        );
        let in_force = saved("1000000", "");
        assert_eq!(
            written_back("vm.dirty_bytes", &in_force),
            ("vm.dirty_bytes", "1000000")
        );
        let none = saved("0", "0");
        assert_eq!(
            written_back("vm.dirty_ratio", &none),
            ("vm.dirty_ratio", "0")
        );
        assert_eq!(
            written_back("net.core.rmem_max", &saved("0", "")),
            ("net.core.rmem_max", "0")
        );
    }

    #[test]
    fn two_keys_of_one_limit_are_refused() {
        assert!(possible("vm.dirty_bytes", "0", |_| false).is_err());
        assert!(possible("vm.dirty_bytes", "9", |key| key == "vm.dirty_ratio").is_err());
        assert!(possible("vm.dirty_bytes", "9", |_| false).is_ok());
        assert!(possible("vm.swappiness", "0", |_| true).is_ok());
    }
}
