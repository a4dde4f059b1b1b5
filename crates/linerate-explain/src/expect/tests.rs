//! Published figures, the issue's own example, and what must hold for any question.

use proptest::prelude::*;

use super::*;

fn ample() -> HostSettings {
    HostSettings {
        tcp_rmem: Some([4096, 131_072, 1 << 30]),
        tcp_wmem: Some([4096, 16_384, 1 << 30]),
        rmem_max: Some(1 << 30),
        wmem_max: Some(1 << 30),
        ..HostSettings::default()
    }
}

fn answer(asked: &Question, settings: &HostSettings) -> Expectation {
    expect(asked, settings).unwrap()
}

fn gigabit(mtu: u32, ipv6: bool, timestamps: bool) -> f64 {
    let asked = Question {
        mtu_bytes: mtu,
        ipv6,
        ..question(BitRate(1_000_000_000), Nanos::from_millis(10))
    };
    let settings = HostSettings {
        timestamps: Some(timestamps),
        ..ample()
    };
    answer(&asked, &settings).framing.goodput_bps
}

#[test]
fn goodput_at_an_mtu_is_rfc_6349_s() {
    for (mtu, ipv6, timestamps, mbit) in [
        (1500, false, false, 949.3),
        (1500, false, true, 941.5),
        (9000, false, false, 991.4),
        (9000, false, true, 990.0),
        (1500, true, true, 928.5),
    ] {
        let found = gigabit(mtu, ipv6, timestamps) / 1e6;
        assert!((found - mbit).abs() < 0.1, "MTU {mtu}: {found}");
    }
}

#[test]
fn ten_gigabits_at_sixty_milliseconds_with_the_kernel_s_defaults() {
    let asked = question(BitRate(10_000_000_000), Nanos::from_millis(60));
    let defaults = HostSettings {
        tcp_rmem: Some([4096, 131_072, 6_291_456]),
        tcp_wmem: Some([4096, 16_384, 4_194_304]),
        ..HostSettings::default()
    };
    let answer = answer(&asked, &defaults);
    assert_eq!(answer.bdp_bytes, 75_000_000);
    let configured = answer.configured.unwrap();
    // 4 MiB × 2/3 / 60 ms = 373 Mbit/s; half of 6 MiB would carry 419.
    assert_eq!(configured.bound, Bound::SendBuffer);
    assert!((configured.plateau_bps[0] / 372.8e6 - 1.0).abs() < 0.01);
    assert_eq!(answer.tuned.bound, Bound::Path);
    assert!((answer.tuned.plateau_bps[0] / 9.4148e9 - 1.0).abs() < 0.001);
    // Twice the payload in flight, twice as the kernel counts: 4 × 70.6 MB.
    assert!((answer.need.advised_rmem_bytes as f64 / 282.4e6 - 1.0).abs() < 0.01);
    let ramp = answer.tuned.ramp.unwrap();
    assert_eq!(ramp.doublings, 13);
    assert!(ramp.hystart && ramp.ns[0] == 780_000_000);
    assert!(answer.notes.iter().any(|note| note.contains("HyStart")));
    // A ten-second average says some percent less.
    assert!(answer.tuned.whole_run_bps[1] < 0.97 * answer.tuned.plateau_bps[1]);
}

#[test]
fn loss_holds_what_it_holds_and_bbr_is_said_to_be_otherwise() {
    let base = Question {
        loss: Some(1e-4),
        ..question(BitRate(1_000_000_000), Nanos::from_millis(40))
    };
    let cubic = answer(&base, &ample());
    assert_eq!(cubic.tuned.bound, Bound::Loss);
    assert!(cubic.tuned.ramp.is_none());
    // Reno-friendly floor: 1.2247/√1e-4 = 122 segments each 40 ms; CUBIC's own is 94.
    assert!((cubic.tuned.plateau_bps[0] / 35.5e6 - 1.0).abs() < 0.01);
    let bbr = answer(
        &Question {
            congestion: "bbr".to_owned(),
            ..base
        },
        &ample(),
    );
    assert_eq!(bbr.tuned.bound, Bound::Path);
    assert_eq!((bbr.loss.bears, bbr.queue_bytes), (None, None));
    assert!(bbr.notes.iter().any(|note| note.contains("not loss")));
}

#[test]
fn buffers_that_are_asked_for_are_bounded_by_what_is_granted() {
    let asked = Question {
        window_bytes: Some(Bytes(32 << 20)),
        ..question(BitRate(10_000_000_000), Nanos::from_millis(60))
    };
    let settings = HostSettings {
        rmem_max: Some(212_992),
        ..ample()
    };
    let answer = answer(&asked, &settings);
    assert_eq!(answer.configured.unwrap().window_bytes[0], 212_992);
    assert_eq!(answer.tuned.window_bytes[0], 32 << 20);
}

#[test]
fn what_is_not_known_of_the_host_is_not_made_up() {
    let asked = question(BitRate(1_000_000_000), Nanos::from_millis(10));
    let answer = answer(&asked, &HostSettings::default());
    assert!(answer.configured.is_none());
    assert!(
        answer
            .notes
            .iter()
            .any(|note| note.contains("could not be read"))
    );
}

#[test]
fn a_window_without_scaling_is_64_kib() {
    let asked = question(BitRate(1_000_000_000), Nanos::from_millis(100));
    let settings = HostSettings {
        window_scaling: Some(false),
        ..ample()
    };
    let course = answer(&asked, &settings).configured.unwrap();
    assert_eq!(course.window_bytes, [65_535, 65_535]);
    assert!((course.plateau_bps[0] / 5.243e6 - 1.0).abs() < 0.01);
}

#[test]
fn more_than_a_window_can_tell_needs_more_streams() {
    let asked = question(BitRate(400_000_000_000), Nanos::from_millis(100));
    let answer = answer(&asked, &ample());
    assert_eq!(answer.need.least_streams, 5);
    assert!(
        answer
            .notes
            .iter()
            .any(|note| note.contains("at least 5 streams"))
    );
    assert_eq!(answer.tuned.bound, Bound::ReceiveWindow);
}

#[test]
fn bad_questions_name_their_option() {
    type Spoil = fn(&mut Question);
    let good = || question(BitRate(1_000_000_000), Nanos::from_millis(10));
    let cases: [(&str, Spoil); 11] = [
        ("--rate", |asked| asked.rate_bps = BitRate(0)),
        ("--rtt", |asked| asked.rtt_ns = Nanos::ZERO),
        ("--rtt", |asked| asked.rtt_ns = Nanos::from_millis(60_001)),
        ("--mtu", |asked| asked.mtu_bytes = 60),
        ("--mtu", |asked| {
            asked.ipv6 = true;
            asked.mtu_bytes = 1279;
        }),
        ("-P", |asked| asked.streams = 0),
        ("-t", |asked| asked.time_ns = Nanos::ZERO),
        ("--window", |asked| asked.window_bytes = Some(Bytes(0))),
        ("--loss", |asked| asked.loss = Some(f64::NAN)),
        ("--loss", |asked| asked.loss = Some(0.5)),
        ("--window", |asked| {
            asked.window_bytes = Some(Bytes(1 << 30));
        }),
    ];
    for (option, spoil) in cases {
        let mut asked = good();
        spoil(&mut asked);
        assert_eq!(expect(&asked, &ample()).unwrap_err().option, option);
    }
}

proptest! {
    #[test]
    fn any_question_has_an_answer_that_holds_together(
        rate in 1_000_u64..2_000_000_000_000,
        rtt_us in 1_u64..60_000_000,
        mtu in 1280_u32..65_535,
        streams in 1_u16..=128,
        time_ms in 1_u64..86_400_000,
        loss in proptest::option::of(0.0..0.1_f64),
        window in proptest::option::of(1_u64..1 << 30),
        congestion in prop_oneof![Just("cubic"), Just("reno"), Just("bbr"), Just("x")],
        most in 4096_u64..1 << 31,
    ) {
        let asked = Question {
            rate_bps: BitRate(rate),
            rtt_ns: Nanos(rtt_us * 1000),
            mtu_bytes: mtu,
            ipv6: rate % 2 == 0,
            streams,
            time_ns: Nanos::from_millis(time_ms),
            window_bytes: window.map(Bytes),
            loss,
            congestion: congestion.to_owned(),
        };
        let settings = HostSettings {
            tcp_rmem: Some([4096, 131_072, most]),
            tcp_wmem: Some([4096, 16_384, most]),
            ..ample()
        };
        let answer = expect(&asked, &settings).unwrap();
        prop_assert!(answer.loss.longest_rtt_ns.is_none_or(|rtt| rtt <= 60_000_000_000));
        for course in answer.configured.iter().chain([&answer.tuned]) {
            let [low, high] = course.plateau_bps;
            prop_assert!(low.is_finite() && 0.0 <= low && low <= high);
            prop_assert!(high <= answer.framing.goodput_bps * 1.000_001);
            prop_assert!(course.whole_run_bps[1] <= high * 1.000_001);
            prop_assert!(course.whole_run_bps.iter().all(|bps| bps.is_finite() && *bps >= 0.0));
            if let Some(ramp) = &course.ramp {
                prop_assert!(ramp.ns[0] <= ramp.ns[1]);
            }
        }
        if window.is_none() && answer.need.advised_rmem_bytes < 2_147_483_647 {
            prop_assert!(answer.tuned.bound == Bound::Path || answer.tuned.bound == Bound::Loss, "{:?}", answer.tuned);
        }
    }
}
