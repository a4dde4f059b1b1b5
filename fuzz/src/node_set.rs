//! A set of host names: the first line, with the rest as groups, as an inventory and as the file that it may name.

use linerate_fleet::nodes::{
    Groups, MOST_NAMES, NodeSet, Sources, groups_in_yaml, inventory, inventory_in_yaml,
};

/// Larger sets take so long to fold that the inputs would be few.
const FOLDED: usize = 2_000;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (set, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut groups = Groups::none();
    // What cannot be read leaves the groups that were.
    drop(groups.add_lines("groups", rest));
    drop(inventory(&mut groups, "inventory", rest));
    drop(inventory_in_yaml(&mut groups, "inventory.yaml", rest));
    drop(groups_in_yaml(&mut groups, "groups.yaml", rest));
    let sources = Sources {
        groups: &groups,
        file: &|_| Ok(rest.to_owned()),
    };
    match NodeSet::read(set, &sources) {
        Ok(set) => {
            assert!(set.len() <= MOST_NAMES);
            if set.len() <= FOLDED {
                let again = NodeSet::read(&set.to_string(), &Sources::none());
                assert_eq!(again.as_ref(), Ok(&set));
                assert!(set.names().all(|name| !name.starts_with('-')));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
