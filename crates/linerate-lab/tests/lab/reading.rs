//! Scenario files that are right.

use std::num::NonZeroU64;

use linerate_lab::path::{Codel, Discipline, Loss, Probability};
use linerate_lab::scenario::{CrossKind, Family, Mode, ModeWish, Scenario, Way};
use linerate_model::units::{BitRate, Bytes, Nanos};

/// Every key, as the reference shows them.
const FULL: &str = r#"
name = "receive-window-60ms"
about = "a receiver whose buffer is smaller than the path needs"
seed = 7
mode = "auto"
family = "ipv4"
[path]
rate = "1G"
rtt = "60ms"
jitter = "0ms"
queue = "1x"
policer = { rate = "300M", burst = "500kB" }
loss = 1e-4
reorder = { fraction = 0.01, delay = "2ms" }
duplicate = 0.0
max_packet = { bytes = 1400, icmp = false }
ecn_threshold = "100kB"
[[path.change]]
at = "5s"
rtt = "90ms"
[[path.cross]]
kind = "udp"
rate = "400M"
from = "2s"
to = "8s"
[sender]
congestion = "cubic"
tcp_wmem = "4096 16384 4194304"
mtu = 1500
cpu = 0.3
sysctl = { "net.ipv4.tcp_ecn" = "1" }
[receiver]
tcp_rmem = "4096 131072 1048576"
read_rate = "200M"
[test]
args = "-t 8"
[expect]
top = "receive-window"
with = []
also = ["slow-start"]
never = ["policer"]
goodput = "65M..125M"
"#;

fn read(text: &str) -> Scenario {
    Scenario::parse("test.toml", &format!("name = \"test\"\n{text}")).expect("the text is right")
}

fn odds(share: f64) -> Probability {
    Probability::new(share).expect("a share")
}

#[test]
fn every_key_is_understood() {
    let scenario = Scenario::parse("receive-window-60ms.toml", FULL).unwrap();
    assert_eq!(scenario.name, "receive-window-60ms");
    assert_eq!((scenario.seed, scenario.family), (7, Family::Ipv4));
    assert_eq!(scenario.mode, ModeWish::Auto);
    assert_eq!(scenario.resolved_mode(), Mode::Packet);
    let forward = &scenario.path.forward;
    assert_eq!(&scenario.path.forward, &scenario.path.back);
    let settings = forward.settings;
    assert_eq!(settings.delay, Nanos::from_millis(30));
    assert_eq!(settings.overhead, 38);
    let bottleneck = settings.bottleneck.unwrap();
    assert_eq!(bottleneck.rate, BitRate(1_000_000_000));
    // 1 Gbit/s for 60 ms.
    assert_eq!(bottleneck.queue, Bytes(7_500_000));
    assert_eq!(bottleneck.ecn_threshold, Some(Bytes(100_000)));
    assert_eq!(bottleneck.discipline, Discipline::DropTail);
    assert_eq!(settings.policer.unwrap().burst, Bytes(500_000));
    assert_eq!(settings.loss, Loss::Independent(odds(1e-4)));
    assert_eq!(settings.reorder.unwrap().delay, Nanos::from_millis(2));
    assert_eq!(settings.max_packet.unwrap().bytes, 1400);
    assert!(!settings.max_packet.unwrap().icmp);
    // The change keeps everything else, and the queue's bytes.
    let [change] = &forward.changes[..] else {
        panic!("{:?}", forward.changes)
    };
    assert_eq!(change.at, Nanos::from_millis(5000));
    assert_eq!(change.settings.delay, Nanos::from_millis(45));
    assert_eq!(change.settings.bottleneck, settings.bottleneck);
    let [cross] = &scenario.path.cross[..] else {
        panic!("{:?}", scenario.path.cross)
    };
    assert_eq!(
        cross.kind,
        CrossKind::Udp {
            rate: BitRate(400_000_000)
        }
    );
    assert_eq!(
        (cross.way, cross.to),
        (Way::Forward, Some(Nanos::from_millis(8000)))
    );
    assert_eq!(scenario.sender.tcp_wmem, Some([4096, 16384, 4_194_304]));
    assert_eq!(scenario.sender.cpu, Some(0.3));
    assert_eq!(scenario.sender.sysctl["net.ipv4.tcp_ecn"], "1");
    assert_eq!(scenario.receiver.read_rate, Some(BitRate(200_000_000)));
    assert_eq!(scenario.receiver.congestion, "cubic");
    assert_eq!(scenario.test.args, ["-t", "8"]);
    assert_eq!(scenario.expect.top, ["receive-window"]);
    assert!(scenario.expect.goodput.unwrap().holds(125e6));
    assert!(!scenario.expect.goodput.unwrap().holds(64e6));
}

#[test]
fn a_name_alone_is_a_path_that_passes_everything() {
    let scenario = read("");
    assert_eq!(scenario.path.rtt(), Nanos::ZERO);
    assert_eq!(scenario.path.forward.settings.bottleneck, None);
    assert_eq!(scenario.sender.congestion, "cubic");
    assert_eq!(scenario.resolved_mode(), Mode::Bulk);
    assert_eq!(scenario.test.duration(), Some(Nanos::from_millis(10_000)));
}

#[test]
fn directions_override_what_both_share() {
    let scenario = read(
        "[path]\nrate = \"100M\"\nrtt = \"20ms\"\nloss = { every = 10 }\n[path.back]\nrate = \"unlimited\"\ndelay = \"40ms\"\nloss = 0\n[[path.change]]\nat = \"2s\"\nrate = \"50M\"\n[[path.forward.change]]\nat = \"1s\"\nloss = 0",
    );
    let (forward, back) = (&scenario.path.forward, &scenario.path.back);
    assert_eq!(scenario.path.rtt(), Nanos::from_millis(50));
    assert_eq!(
        forward.settings.loss,
        Loss::Every(NonZeroU64::new(10).unwrap())
    );
    // A queue that nobody sized: 100 Mbit/s for the 50 ms of both ways together.
    let queue = |settings: &linerate_lab::path::Settings| settings.bottleneck.unwrap().queue;
    assert_eq!(queue(&forward.settings), Bytes(625_000));
    assert_eq!(back.settings.bottleneck, None);
    assert_eq!(back.settings.loss, Loss::None);
    // In order of time, each on top of the one before; the queue stays as long as it was.
    let at: Vec<_> = forward
        .changes
        .iter()
        .map(|change| change.at.0 / 1_000_000_000)
        .collect();
    assert_eq!(at, [1, 2]);
    assert_eq!(forward.changes[0].settings.loss, Loss::None);
    assert_eq!(forward.changes[1].settings.loss, Loss::None);
    assert_eq!(queue(&forward.changes[1].settings), Bytes(625_000));
    assert_eq!(back.changes.len(), 1);
    assert_eq!(
        back.changes[0].settings.bottleneck.unwrap().rate,
        BitRate(50_000_000)
    );
}

#[test]
fn loss_and_codel_have_their_forms() {
    let gilbert = read("[path]\nloss = { model = \"gilbert\", p = 1e-4, r = 0.3 }");
    assert_eq!(
        gilbert.path.forward.settings.loss,
        Loss::Gilbert {
            p: odds(1e-4),
            r: odds(0.3),
            bad: Probability::ALWAYS,
            good: Probability::NEVER
        }
    );
    let discipline = |codel: &str| {
        let scenario = read(&format!("[path]\nrate = \"10M\"\ncodel = {codel}"));
        scenario
            .path
            .forward
            .settings
            .bottleneck
            .unwrap()
            .discipline
    };
    assert_eq!(discipline("true"), Discipline::Codel(Codel::default()));
    assert_eq!(discipline("false"), Discipline::DropTail);
    let fast = Codel {
        target: Nanos::from_millis(1),
        ecn: true,
        ..Codel::default()
    };
    assert_eq!(
        discipline("{ target = \"1ms\", ecn = true }"),
        Discipline::Codel(fast)
    );
}

#[test]
fn the_mode_follows_what_the_path_decides() {
    for (path, mode) in [
        ("rate = \"10G\"\nrtt = \"60ms\"", Mode::Bulk),
        ("rate = \"1G\"\nrtt = \"60ms\"", Mode::Bulk),
        // 125 kB would be two super-segments.
        ("rate = \"100M\"\nrtt = \"10ms\"", Mode::Packet),
        ("rate = \"1G\"\nrtt = \"60ms\"\nloss = 1e-4", Mode::Packet),
        ("rate = \"10G\"\nrtt = \"60ms\"\nloss = 1e-6", Mode::Bulk),
        ("rate = \"10G\"\nrtt = \"1ms\"\ncodel = true", Mode::Packet),
        ("duplicate = 0.01", Mode::Packet),
        ("max_packet = { bytes = 1400 }", Mode::Packet),
    ] {
        assert_eq!(
            read(&format!("[path]\n{path}")).resolved_mode(),
            mode,
            "{path}"
        );
    }
}

#[test]
fn arguments_are_split_as_a_shell_would() {
    let scenario = read("[test]\nargs = \"-t5 -R --title 'two words' -P  4\"");
    assert_eq!(
        scenario.test.args,
        ["-t5", "-R", "--title", "two words", "-P", "4"]
    );
    assert_eq!(scenario.test.duration(), Some(Nanos::from_millis(5000)));
    assert_eq!(scenario.test.ways(), [Way::Back]);
    let omitting = read("[test]\nargs = \"-t 5 -O 2\"");
    assert_eq!(omitting.test.duration(), Some(Nanos::from_millis(7000)));
    let listed = read("[test]\nargs = [\"-n\", \"1G\", \"--bidir\"]");
    assert_eq!(listed.test.duration(), None);
    assert_eq!(listed.test.ways(), [Way::Forward, Way::Back]);
}

#[test]
fn a_multiple_is_reckoned_with_the_rate_and_rtt_at_the_start() {
    let queues = |path: &str| -> Vec<u64> {
        let text = format!("name = \"x\"\n[path]\nrtt = \"80ms\"\n{path}");
        let scenario = Scenario::parse("x", &text).expect("it reads");
        let settings = scenario.all_settings();
        settings
            .filter(|(way, _)| *way == linerate_lab::scenario::Way::Forward)
            .filter_map(|(_, settings)| Some(settings.bottleneck?.queue.count()))
            .collect()
    };
    // 100 Mbit/s × 80 ms = 1 MB.
    let later = "[[path.change]]\nat = \"2s\"\nrate = \"10M\"\nqueue = \"0.5x\"\n";
    assert_eq!(
        queues(&format!("rate = \"100M\"\n{later}")),
        [1_000_000, 500_000]
    );
    // Without a rate at the start, the first one counts.
    assert_eq!(queues(later), [50_000]);
}

#[test]
fn the_test_goes_where_its_arguments_say_however_they_are_joined() {
    use linerate_lab::scenario::Way;
    for (args, ways) in [
        ("-uR -b 40M -t 2", &[Way::Back][..]),
        ("-t 2 -T -R", &[Way::Forward]),
        ("-NZ --bidir", &[Way::Forward, Way::Back]),
        ("-b40M -t2", &[Way::Forward]),
    ] {
        let text = format!("name = \"x\"\n[test]\nargs = \"{args}\"\n");
        let scenario = Scenario::parse("x", &text).expect("it reads");
        assert_eq!(scenario.test.ways(), ways, "{args}");
        let seconds = scenario.test.duration().expect("a duration").as_secs_f64();
        assert!([2.0, 10.0].contains(&seconds), "{args}: {seconds}");
    }
    for own in [
        "-p5000",
        "-ofile",
        "-u4",
        "-p=5",
        "--version6",
        "--json-document",
    ] {
        let text = format!("name = \"x\"\n[test]\nargs = \"{own}\"\n");
        let error = Scenario::parse("x", &text).expect_err("it is the lab's own");
        assert!(error.to_string().contains("the lab sets -"), "{error}");
    }
}
