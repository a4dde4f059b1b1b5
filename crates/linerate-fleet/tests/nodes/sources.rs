//! Groups, inventories and files that sets name.

use linerate_fleet::nodes::{Groups, NodeSet, NodesError, Sources, inventory};

fn folded(groups: &Groups, text: &str) -> Result<String, NodesError> {
    let file = |name: &str| match name {
        "hosts" => Ok("n[1-2] # two\n\nn9\n".to_owned()),
        "itself" => Ok("^itself".to_owned()),
        _ => Err("No such file or directory".to_owned()),
    };
    let sources = Sources {
        groups,
        file: &file,
    };
    NodeSet::read(text, &sources).map(|set| set.to_string())
}

fn local() -> Groups {
    let mut groups = Groups::none();
    let text = "# racks\nrack1: n[1-4]\nrack2: n[5-8]\ncompute: @rack[1-2]!@broken\nbroken: n3\na: @b\nb: @a\n";
    groups.add_lines("local.cfg", text).unwrap();
    groups
}

#[test]
fn groups_have_sets_that_may_name_groups() {
    let groups = local();
    assert_eq!(folded(&groups, "@compute").unwrap(), "n[1-2,4-8]");
    assert_eq!(folded(&groups, "@rack[1-2]&n[4-5]").unwrap(), "n[4-5]");
    assert_eq!(folded(&groups, "@local:rack1").unwrap(), "n[1-4]");
    let error = folded(&groups, "@a").unwrap_err().to_string();
    assert_eq!(error, "groups contain each other: @a → @b → @a");
    let error = folded(&groups, "@rack3").unwrap_err().to_string();
    assert!(
        error.starts_with("no group 'rack3' in the groups of 'local'; it has a, b, broken,"),
        "{error}"
    );
    let error = folded(&groups, "@other:rack1").unwrap_err();
    assert_eq!(error, NodesError::Source("other".to_owned()));
    let error = Groups::none()
        .add_lines("f", "x: n1\nnonsense\n")
        .unwrap_err();
    assert!(error.to_string().starts_with("f, line 2:"), "{error}");
}

#[test]
fn all_hosts_are_the_group_all_or_those_of_every_group() {
    let mut groups = Groups::none();
    groups.add_lines("f", "one: n1\ntwo: n2\n").unwrap();
    assert_eq!(folded(&groups, "@*").unwrap(), "n[1-2]");
    groups.add_lines("g", "all: n[1-9]\none: n77\n").unwrap();
    assert_eq!(folded(&groups, "@*!@one").unwrap(), "n[2-9]");
}

#[test]
fn files_have_a_set_a_line() {
    let groups = Groups::none();
    assert_eq!(folded(&groups, "^hosts,n3").unwrap(), "n[1-3,9]");
    let error = folded(&groups, "n1,^missing").unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot read the hosts in missing: No such file or directory"
    );
    assert!(matches!(
        folded(&groups, "^itself"),
        Err(NodesError::Nested(_))
    ));
}

#[test]
fn an_inventory_s_groups_are_those_of_ansible() {
    let mut groups = Groups::none();
    let text = "mail ansible_user=admin\n[web]\nweb[01:50:7]  http_port=80\n[db]\ndb1 ansible_host=10.0.0.7\n\
                [all_of:children]\nweb\ndb\n[web:vars]\nx=1 2 3\n";
    inventory(&mut groups, "hosts.ini", text).unwrap();
    assert_eq!(folded(&groups, "@ungrouped").unwrap(), "mail");
    assert_eq!(
        folded(&groups, "@web").unwrap(),
        "web[01,08,15,22,29,36,43,50]"
    );
    assert_eq!(folded(&groups, "@all_of!@web").unwrap(), "10.0.0.7");
    for (text, why) in [
        ("[web]\nweb[f:a]\n", "f, line 2: '[f:a]' is no range"),
        ("[web:hosts]\n", "f, line 1: […:hosts] is not known"),
        ("web1 web2\n", "f, line 1: 'web2' is no variable"),
    ] {
        let error = inventory(&mut Groups::none(), "f", text)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(why), "{error}");
    }
}
