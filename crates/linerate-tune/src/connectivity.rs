//! What of a host's connections to the world is no longer there: the facts before a change against those after it.

use linerate_model::host::{HostFacts, Interface, RouteFacts};

/// What was there before and is not now, as a sentence each: links, addresses, default routes. What cannot be seen is
/// not missed.
pub fn lost(before: &HostFacts, after: &HostFacts) -> Vec<String> {
    let mut lost = Vec::new();
    for was in before.interfaces.known().into_iter().flatten() {
        match after.interface(&was.name) {
            None if after.interfaces.known().is_some() => {
                lost.push(format!("the interface {} is gone", was.name));
            }
            None => {}
            Some(is) => lost.extend(lost_of(was, is)),
        }
    }
    if let (Some(were), Some(are)) = (before.routes.known(), after.routes.known()) {
        let default = |route: &&RouteFacts| route.destination == "default";
        let gone = were.iter().filter(default).filter(|was| {
            !are.iter()
                .any(|is| is.destination == "default" && same_way(was, is))
        });
        lost.extend(gone.map(|was| {
            let via = was.gateway.as_deref().map(|to| format!(" via {to}"));
            let on = was.interface.as_deref().map(|on| format!(" on {on}"));
            format!(
                "the default route{}{} is gone",
                via.unwrap_or_default(),
                on.unwrap_or_default()
            )
        }));
    }
    lost
}

fn same_way(one: &RouteFacts, other: &RouteFacts) -> bool {
    one.gateway == other.gateway && one.interface == other.interface
}

fn lost_of(was: &Interface, is: &Interface) -> Vec<String> {
    let mut lost = Vec::new();
    let state = |one: &Interface| one.operstate.known().cloned();
    if state(was).as_deref() == Some("up")
        && let Some(now) = state(is).filter(|now| now != "up")
    {
        lost.push(format!("{} was up and is {now}", was.name));
    }
    if was.up && !is.up {
        lost.push(format!("{} was set down", was.name));
    }
    if let (Some(had), Some(has)) = (was.addresses.known(), is.addresses.known()) {
        let gone = had.iter().filter(|address| !has.contains(address));
        lost.extend(gone.map(|address| format!("{} lost its address {address}", was.name)));
    }
    lost
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Fact;

    use super::*;

    fn host() -> HostFacts {
        HostFacts {
            interfaces: Fact::Known(vec![Interface {
                name: "eth0".to_owned(),
                up: true,
                operstate: Fact::Known("up".to_owned()),
                addresses: Fact::Known(vec!["192.0.2.2/24".to_owned()]),
                ..Interface::default()
            }]),
            routes: Fact::Known(vec![RouteFacts {
                destination: "default".to_owned(),
                gateway: Some("192.0.2.1".to_owned()),
                interface: Some("eth0".to_owned()),
                ..RouteFacts::default()
            }]),
            ..HostFacts::default()
        }
    }

    #[test]
    fn links_addresses_and_routes_are_missed() {
        assert_eq!(lost(&host(), &host()), Vec::<String>::new());
        let mut after = host();
        let Fact::Known(interfaces) = &mut after.interfaces else {
            unreachable!()
        };
        interfaces[0].operstate = Fact::Known("lowerlayerdown".to_owned());
        interfaces[0].up = false;
        interfaces[0].addresses = Fact::Known(Vec::new());
        after.routes = Fact::Known(Vec::new());
        assert_eq!(
            lost(&host(), &after),
            [
                "eth0 was up and is lowerlayerdown",
                "eth0 was set down",
                "eth0 lost its address 192.0.2.2/24",
                "the default route via 192.0.2.1 on eth0 is gone",
            ]
        );
        after.interfaces = Fact::Known(Vec::new());
        assert_eq!(lost(&host(), &after)[0], "the interface eth0 is gone");
    }

    #[test]
    fn what_cannot_be_seen_is_not_missed() {
        let unseen = HostFacts::default();
        assert_eq!(lost(&host(), &unseen), Vec::<String>::new());
        assert_eq!(lost(&unseen, &host()), Vec::<String>::new());
    }
}
