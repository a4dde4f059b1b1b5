//! Tests over SCTP, which Debian's kernel has: linerate with itself and with Debian's iperf3 at either end.

use serde_json::Value;

use crate::images::images;
use crate::machine::{Build, Disk, Machine, System};

const OURS: &str = "linerate iperf3";
const STOCK: &str = "/usr/bin/iperf3";

#[test]
fn sctp_with_itself_and_with_iperf3() {
    let Some(images) = images("sctp_with_itself_and_with_iperf3") else {
        return;
    };
    let disk = Disk::new(images);
    let mut machine = Machine::boot(&disk, &Build::new(System::Small, &[]));
    // A server that nobody asks for SCTP does not have it.
    assert_eq!(machine.run("grep -q ^sctp /proc/modules").code, 1);
    for (client, server) in [(OURS, OURS), (OURS, STOCK), (STOCK, OURS)] {
        for options in ["-n 768K", "-R -P 2 -t 1 -l 8K -b 2M"] {
            let both = run(&mut machine, client, server, options);
            both.agree(client == OURS && server == OURS);
        }
    }
    let special = "-6 -X ::1 --nstreams 4 -N -M 1000 -S 16 -k 100 -l 1000 -w 256K --bidir";
    let both = run(&mut machine, OURS, OURS, special);
    both.agree(true);
    assert_eq!(both.client["end"]["sum_received"]["bytes"], 100_000);
    assert_eq!(both.client["start"]["connected"][0]["local_host"], "::1");
    serve(&mut machine);
    machine.power_off();
}

/// What both ends of a test wrote.
struct Both {
    what: String,
    client: Value,
    server: Value,
}

fn run(machine: &mut Machine<'_>, client: &str, server: &str, options: &str) -> Both {
    let host = if options.contains("-6") {
        "::1"
    } else {
        "127.0.0.1"
    };
    machine.ok(&format!(
        "rm -f /tmp/server; {server} -s -1 -J >/tmp/server & echo $! >/tmp/pid; \
         timeout 30 bash -c 'until ss -Hltn sport = :5201 | grep -q .; do sleep 0.05; done'"
    ));
    let near = machine.run(&format!(
        "timeout 40 {client} -c {host} --sctp {options} -J"
    ));
    machine
        .ok("timeout 30 bash -c 'while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done'");
    let far = machine.ok("cat /tmp/server");
    let what = format!("{client} -c, {server} -s, {options}");
    crate::say(&what);
    assert_eq!(near.code, 0, "{what}: {}\n{far}", near.text);
    let read = |text: &str| -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"))
    };
    let (near, far) = (read(&near.text), read(&far));
    for document in [&near, &far] {
        assert!(document.get("error").is_none(), "{what}: {document:#}");
        assert_eq!(
            document["start"]["test_start"]["protocol"], "SCTP",
            "{what}"
        );
    }
    Both {
        what,
        client: near,
        server: far,
    }
}

impl Both {
    /// The ends agree about what was received, and little is missing of what was sent; between two linerates, nothing.
    fn agree(&self, ours: bool) {
        let Self {
            what,
            client,
            server,
        } = self;
        let mut sums = vec!["sum_received"];
        if client["end"].get("sum_received_bidir_reverse").is_some() {
            sums.push("sum_received_bidir_reverse");
        }
        for sum in sums {
            let of = |document: &Value, sum: &str, key: &str| {
                let found = document["end"][sum][key].as_f64();
                found.unwrap_or_else(|| panic!("{what}: {sum} {key} in {document:#}"))
            };
            let sent_sum = sum.replace("received", "sent");
            let (sent, received) = (of(client, &sent_sum, "bytes"), of(client, sum, "bytes"));
            assert!(received > 0.0, "{what}: {client:#}");
            let block = client["start"]["test_start"]["blksize"].as_f64().unwrap();
            let missing = sent - received;
            // A stock iperf3 ends the test with blocks under way, and reads none of them.
            let most = if ours { 0.0 } else { 4.0 * block + 0.1 * sent };
            assert!(
                (0.0..=most).contains(&missing),
                "{what}: {missing} of {sent} B are missing"
            );
            // Of a stock server only the half is known that it saw itself.
            if of(server, sum, "bytes") > 0.0 {
                let bytes = |document: &Value| document["end"][sum]["bytes"].as_u64();
                assert_eq!(bytes(server), bytes(client), "{what}: {server:#}");
                // Each end has its own second, and in an emulated guest the ends stop at different times: what
                // each says must follow from its own bytes and its own time.
                for end in [client, server] {
                    let [bytes, seconds, rate] =
                        ["bytes", "seconds", "bits_per_second"].map(|key| of(end, sum, key));
                    let apart = (rate * seconds / 8.0 - bytes).abs() / bytes;
                    assert!(apart < 1e-3, "{what}: {bytes} B, {seconds} s, {rate} bit/s");
                }
            }
            let stream = &client["end"]["streams"][0]["sender"];
            assert!(stream["bytes"].is_u64(), "{what}: {client:#}");
        }
    }
}

/// `linerate serve` answers as well, and listens for SCTP only while a test opens its streams.
fn serve(machine: &mut Machine<'_>) {
    machine.ok("linerate serve >/tmp/served 2>&1 & echo $! >/tmp/pid; \
         timeout 30 bash -c 'until ss -Hltn sport = :5201 | grep -q .; do sleep 0.05; done'");
    for _ in 0..2 {
        let done = machine.ok("/usr/bin/iperf3 -c 127.0.0.1 --sctp -P 2 -n 256K -J");
        let document: Value = serde_json::from_str(&done).unwrap();
        assert_eq!(document["end"]["streams"].as_array().unwrap().len(), 2);
        machine.ok(
            "timeout 30 bash -c 'while ss -HlS sport = :5201 | grep -q .; do sleep 0.05; done'",
        );
    }
    strangers(machine);
    machine.ok("kill $(cat /tmp/pid)");
}

/// A test takes nothing but its own associations, and an association begins no test.
fn strangers(machine: &mut Machine<'_>) {
    machine.write("/root/strangers.pl", STRANGERS);
    let said = machine.ok("perl /root/strangers.pl");
    assert_eq!(said, "stranger ff\ntcp \nbegun 1");
    machine.ok(
        "timeout 30 bash -c 'until grep -q \"belongs to no test\" /tmp/served; do sleep 0.05; done'",
    );
}

/// A client of one SCTP stream: before that, it comes with another cookie, and with the right one over TCP.
const STRANGERS: &str = r#"
use strict;
use warnings;
$SIG{ALRM} = sub { die "too long" };
alarm 30;
sub reach {
    my ($protocol) = @_;
    socket(my $socket, 2, 1, $protocol) or die "socket: $!";
    connect($socket, pack("S n C4 x8", 2, 5201, 127, 0, 0, 1)) or die "connect, $protocol: $!";
    return $socket;
}
sub take {
    my ($socket, $bytes) = @_;
    my $all = "";
    while (length $all < $bytes) {
        sysread($socket, my $part, $bytes - length $all) or last;
        $all .= $part;
    }
    return $all;
}
my ($tcp, $sctp, $cookie) = (6, 132, "a" x 36 . "\0");
my $control = reach($tcp);
syswrite $control, $cookie;
ord(take($control, 1)) == 9 or die "it asks for no parameters";
my $asked = '{"sctp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000,"client_version":"3.12"}';
syswrite $control, pack("N", length $asked) . $asked;
ord(take($control, 1)) == 10 or die "it asks for no streams";
my $stranger = reach($sctp);
syswrite $stranger, "b" x 36 . "\0";
print "stranger ", unpack("H*", take($stranger, 2)), "\n";
my $other = reach($tcp);
syswrite $other, $cookie;
print "tcp ", unpack("H*", take($other, 1)), "\n";
my $stream = reach($sctp);
syswrite $stream, $cookie;
print "begun ", ord(take($control, 1)), "\n";
"#;
