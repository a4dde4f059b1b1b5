//! A VLAN and the card below it: the one below is changed first, and all of it goes back.

use crate::images::images;
use crate::machine::{Build, Card, Disk, Machine, System};

#[test]
fn parent_before_child() {
    let Some(images) = images("parent_before_child") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = Machine::boot(&disk, &Build::new(System::Small, &[Card::Queues(2)]));
    machine.ok(
        "ip link set eth0 up && ip link add link eth0 name eth0.5 type vlan id 5 \
         && ip address add 10.5.0.2/24 dev eth0.5 && ip link set eth0.5 up",
    );
    let mtus = "cat /sys/class/net/eth0/mtu /sys/class/net/eth0.5/mtu | xargs";
    machine.write(
        "/root/vlan.toml",
        "[interface.\"eth0.5\"]\nmtu = 9000\n[interface.eth0]\nmtu = 9000",
    );
    machine.ok("linerate tune apply /root/vlan.toml --allow link-flap --confirm-within 5s");
    assert_eq!(machine.ok(mtus), "9000 9000");
    machine.ok(&format!(
        "timeout 40 bash -c 'until [ \"$({mtus})\" = \"1500 1500\" ]; do sleep 0.1; done'"
    ));
    // The child alone cannot be larger than what is below it: nothing is touched.
    machine.write("/root/child.toml", "[interface.\"eth0.5\"]\nmtu = 9000");
    let refused = machine.run("linerate tune apply /root/child.toml --allow link-flap");
    assert_eq!(refused.code, 1, "{}", refused.text);
    assert!(refused.text.contains("eth0"), "{}", refused.text);
    assert_eq!(machine.ok(mtus), "1500 1500");
    machine.power_off();
}
