//! The disciplines of an emulated path, in a namespace made for the test. The test runs itself again inside.

use std::net::UdpSocket;

use linerate_kernel::setting::emulation::{Netem, Place, TokenBucket, set_netem, set_token_bucket};
use linerate_kernel::{counters, route, setting};
use linerate_model::units::{BitRate, Nanos};
use linerate_testing::{Need, USER_AND_NETWORK, in_namespaces, skipped};

#[test]
fn a_bucket_is_put_there_and_counts_and_netem_is_or_is_named_as_missing() {
    let test = "emulation::a_bucket_is_put_there_and_counts_and_netem_is_or_is_named_as_missing";
    in_namespaces(&USER_AND_NETWORK, test, "", || {
        bucket();
        netem();
    });
}

/// Datagrams of 1000 bytes of payload through a bucket on the loopback interface, all at once: what it holds at once
/// passes, what fits waits, and the rest is dropped, by the lengths that it was told to count.
fn bucket() {
    setting::set_up("lo", true).unwrap();
    let index = route::index_of("lo").unwrap();
    let bucket = TokenBucket {
        rate: BitRate(80),
        burst: 70_000,
        queue: 3 * 1128,
    };
    match set_token_bucket("lo", &bucket, Place::Alone, 100) {
        Err(error) if error.code() == Some(libc::ENOENT) => {
            assert!(error.to_string().contains("CONFIG_NET_SCH_TBF"), "{error}");
            return skipped(Need::Tbf, "a token bucket", "this kernel has no tbf");
        }
        other => other.unwrap(),
    }
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    for _ in 0..80 {
        // A drop in the sending host itself may be told to the sender.
        drop(sender.send(&[0; 1000]));
    }
    let of = |kind: &str| {
        let all = counters::qdiscs(index).unwrap();
        all.into_iter().find(|one| one.kind == kind).unwrap()
    };
    let told = of("tbf");
    // 1028 bytes of IP and 100 of overhead: a bucket of 70,000 holds 62 of them, and at 10 bytes a second the next
    // is minutes away.
    assert_eq!(told.packets, 62, "{told:?}");
    assert_eq!(told.bytes, told.packets * 1128);
    assert_eq!((told.qlen, told.backlog_bytes), (3, 3 * 1128), "{told:?}");
    assert_eq!(told.packets + u64::from(told.drops) + 3, 80, "{told:?}");
    assert!(told.overlimits > 0, "{told:?}");
    // Changed, not replaced: what it counted stays.
    let faster = TokenBucket {
        rate: BitRate(8_000_000_000),
        ..bucket
    };
    set_token_bucket("lo", &faster, Place::Alone, 100).unwrap();
    assert!(of("tbf").packets >= told.packets);
}

fn netem() {
    setting::set_up("lo", true).unwrap();
    let netem = Netem {
        limit: 1000,
        delay: Nanos::from_millis(10),
        ..Netem::default()
    };
    let made = set_netem("lo", &netem, 38);
    if let Err(error) = made {
        assert_eq!(error.code(), Some(libc::ENOENT), "{error}");
        let text = error.to_string();
        let words = "put the qdisc netem on lo: this kernel has no netem (CONFIG_NET_SCH_NETEM";
        assert!(text.contains(words), "{text}");
        return skipped(Need::Netem, "netem", "this kernel has no netem");
    }
    let index = route::index_of("lo").unwrap();
    let all = counters::qdiscs(index).unwrap();
    assert_eq!((all[0].kind.as_str(), all[0].parent), ("netem", u32::MAX));
}
