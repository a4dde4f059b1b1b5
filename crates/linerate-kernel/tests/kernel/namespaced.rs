//! Interfaces, routes and queueing disciplines of a network namespace made for the test. A user
//! namespace gives an ordinary user the privilege; the test runs itself again inside.

use linerate_kernel::{counters, inventory, namespace, route};
use linerate_model::host::Fact;
use linerate_testing::{USER_AND_NETWORK, in_namespaces};

const OUTSIDE: &str = "LINERATE_TEST_NAMESPACE";
const SETUP: &str = "ip link add v0 numtxqueues 4 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0; \
    ip link set v0 up; ip link set v1 up; ip route add 10.77.0.0/16 via 10.9.0.2 mtu lock 1300";

#[test]
fn a_virtual_link_is_told_as_it_is() {
    let outside = namespace::network_id().unwrap().to_string();
    let setup = format!("export {OUTSIDE}={outside}\n{SETUP}");
    let test = "namespaced::a_virtual_link_is_told_as_it_is";
    in_namespaces(&USER_AND_NETWORK, test, &setup, || {
        let inside = namespace::network_id().unwrap().to_string();
        assert_ne!(inside, std::env::var(OUTSIDE).unwrap());
        link();
    });
}

fn link() {
    let index = route::index_of("v0").unwrap();
    let facts = route::interface_facts(index).unwrap().unwrap();
    assert_eq!(
        (facts.kind.as_deref(), facts.driver.as_deref()),
        (Some("veth"), Some("veth"))
    );
    // veth says 10 Gbit/s whatever it does.
    assert_eq!(
        (facts.speed_mbit_per_s, facts.mtu_bytes),
        (Some(10_000), Some(1500))
    );
    let devices = inventory::RunningKernel;
    let root = inventory::Root::of_this_machine();
    let all = inventory::interface(&root, &devices, "v0")
        .unwrap()
        .unwrap();
    assert_eq!(all.tx_queues, Fact::Known(4));
    assert_eq!(all.mac.unwrap().len(), 17);
    let far = route::to([10, 77, 1, 1].into()).unwrap().unwrap();
    assert_eq!(
        (far.interface_index, far.interface_name.as_str()),
        (index, "v0")
    );
    assert_eq!(
        (far.gateway, far.source),
        (Some([10, 9, 0, 2].into()), Some([10, 9, 0, 1].into()))
    );
    assert_eq!(far.mtu, Some(1300));
    assert_eq!(route::to([192, 0, 2, 1].into()).unwrap(), None);
    assert!(counters::interface(index).unwrap().is_some());
    assert!(
        counters::qdiscs(index)
            .unwrap()
            .iter()
            .any(|qdisc| qdisc.parent == u32::MAX)
    );
}
