//! `linerate host audit --storage` on real arrays and volumes: nothing to say of a guest as it comes, and each fault
//! that is made. What a plan sets there comes back.

use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Disk, Drive, Machine, System};
use crate::say;

fn audit(machine: &mut Machine<'_>) -> Value {
    // It exits with 1 where it found something.
    let text = machine.ok("linerate host audit --storage --json || test $? = 1");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Check, subject and outcome of each verdict.
fn verdicts(audit: &Value) -> Vec<(String, String, String)> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let all = audit["verdicts"].as_array().unwrap().iter();
    all.map(|one| {
        (
            word(one, "check"),
            word(one, "subject"),
            word(one, "outcome"),
        )
    })
    .collect()
}

fn is(audit: &Value, check: &str, subject: &str, outcome: &str) {
    let all = verdicts(audit);
    let found = all.iter().any(|(one, of, is)| {
        one == check && is == outcome && (of == subject || subject.is_empty())
    });
    assert!(found, "{check} {subject} {outcome}: {audit:#}");
}

fn firing(audit: &Value) -> Vec<String> {
    let all = verdicts(audit).into_iter();
    all.filter(|(_, _, outcome)| outcome == "fires")
        .map(|(check, subject, _)| format!("{check} {subject}"))
        .collect()
}

#[test]
fn storage_is_audited_as_it_is() {
    let Some(images) = images("storage_is_audited_as_it_is") else {
        return;
    };
    let disk = Disk::new(images);
    let mut build = Build::new(System::Small, &[]);
    build.drives = vec![Drive::of(64); 8];
    let mut machine = Machine::boot(&disk, &build);
    let as_it_comes = audit(&mut machine);
    assert_eq!(
        firing(&as_it_comes),
        Vec::<String>::new(),
        "{as_it_comes:#}"
    );
    is(&as_it_comes, "S12", "", "does_not_apply");

    machine.ok(
        "modprobe raid456 && mdadm --create /dev/md0 --run --assume-clean --bitmap=none --level=5 --raid-devices=4 \
         /dev/vdc /dev/vdd /dev/vde /dev/vdf 2>&1",
    );
    let whole = audit(&mut machine);
    is(&whole, "S12", "md0", "holds");
    // Too small for a bitmap to matter.
    is(&whole, "S14", "md0", "holds");
    plan_and_back(&mut machine);

    machine.ok("mdadm /dev/md0 --fail /dev/vdd --remove /dev/vdd 2>&1");
    is(&audit(&mut machine), "S12", "md0", "fires");
    machine.ok("mdadm /dev/md0 --add /dev/vdd 2>&1; mdadm --wait /dev/md0 2>&1 || test $? = 1");
    is(&audit(&mut machine), "S12", "md0", "holds");

    without_barriers(&mut machine);
    volumes(&mut machine);
    machine.power_off();
}

/// A scheduler, its queue and read-ahead of the running kernel.
fn plan_and_back(machine: &mut Machine<'_>) {
    let see = "for file in vdc/queue/scheduler vdc/queue/nr_requests md0/queue/read_ahead_kb md0/md/sync_speed_max; do \
               cat /sys/block/$file; done; cat /proc/sys/vm/dirty_bytes /proc/sys/vm/dirty_ratio";
    let before = machine.ok(see);
    let other = if before.contains("[none]") {
        "mq-deadline"
    } else {
        "none"
    };
    machine.write(
        "/tmp/p.toml",
        &format!(
            "[block.vdc]\nscheduler = \"{other}\"\nnr_requests = 33\n\n[block.md0]\nread_ahead_kb = 4096\nsync_speed_max = 400000\n\n\
             [sysctl]\n\"vm.dirty_bytes\" = 100000000\n"
        ),
    );
    machine.ok("linerate tune apply /tmp/p.toml --yes --state /tmp/state");
    let changed = machine.ok(see);
    say(&format!("{before}→\n{changed}"));
    for part in [
        &format!("[{other}]"),
        "\n33\n",
        "\n4096\n",
        "400000 (local)",
        "\n100000000\n0",
    ] {
        assert!(changed.contains(part), "{part}: {changed}");
    }
    machine.ok("linerate tune revert --state /tmp/state");
    assert_eq!(machine.ok(see), before);
}

/// A file system that flushes no cache, on disks whose cache QEMU reports as volatile.
fn without_barriers(machine: &mut Machine<'_>) {
    if machine.run("command -v mkfs.ext4 && modprobe ext4").code != 0 {
        say("the guest has no mkfs.ext4: barriers were not looked at");
        return;
    }
    // Blocks of 1 KiB, of which no file says that they are: the stripe fits them alone.
    machine.ok(
        "mkdir -p /tmp/at && mkfs.ext4 -q -b 1024 /dev/md0 2>&1 && mount /dev/md0 /tmp/at 2>&1",
    );
    is(&audit(machine), "S08", "/tmp/at", "cannot_know");
    machine.ok(
        "umount /tmp/at && mkfs.ext4 -q -F -b 4096 /dev/md0 2>&1 && mount -o nobarrier,noauto_da_alloc,commit=60 /dev/md0 /tmp/at 2>&1",
    );
    let audit = audit(machine);
    is(&audit, "S05", "/tmp/at", "fires");
    is(&audit, "S10", "/tmp/at", "fires");
    // mkfs took the stripe from the array.
    is(&audit, "S08", "/tmp/at", "holds");
    machine.ok("mount -o remount,barrier,auto_da_alloc,commit=5 /tmp/at 2>&1");
    let again = self::audit(machine);
    is(&again, "S05", "/tmp/at", "holds");
    is(&again, "S10", "/tmp/at", "holds");
    machine.ok("umount /tmp/at");
}

fn volumes(machine: &mut Machine<'_>) {
    // Without udev.
    let config = "--config 'activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}'";
    machine.ok(&format!(
        "for module in dm-mod dm-mirror dm-raid raid10; do modprobe $module; done; \
         vgcreate {config} vg-a /dev/vdg /dev/vdh /dev/vdi /dev/vdj 2>&1 && \
         lvcreate {config} -y -Zn -n home --type mirror -m 1 --mirrorlog core --nosync -i 2 -L 24M vg-a 2>&1 && \
         lvcreate {config} -y -Zn -n r10 --type raid10 -m 1 -i 2 --nosync -L 24M vg-a 2>&1"
    ));
    let audit = audit(machine);
    is(&audit, "S15", "vg-a/home", "fires");
    is(&audit, "S15", "", "cannot_know");
}
