//! A real Prometheus that scrapes `linerate hub`, and a real Alertmanager that gets its alerts.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use linerate_model::calendar::rfc3339;
use linerate_model::watch::UnixMillis;
use serde_json::Value;

use crate::harness::{
    LONG, Running, beside, free_port, lacks_programs, start, start_with, wait_until,
};
use crate::hub::{Bed, Hub, PATIENCE, text};

/// A program with an HTTP API.
struct Program {
    running: Running,
    address: String,
}

impl Program {
    /// Starts it at a free port of loopback, and waits until it is ready.
    fn start(name: &str, words: &[String]) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(name);
        command
            .args(words)
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn");
        let program = Self {
            running: start(&mut command),
            address,
        };
        let ready = wait_until(PATIENCE, || {
            let answer = program.ask("/-/ready");
            answer.is_some_and(|(head, _)| head.contains(" 200 "))
        });
        assert!(ready, "{name}: {}", program.running.error());
        program
    }

    /// The head and the body of an answer; `None` where there is no whole one.
    fn ask(&self, path: &str) -> Option<(String, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(LONG)).ok()?;
        // An answer to HTTP/1.0 is not in chunks.
        let head = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.to_owned(), body.to_owned()))
    }

    fn json(&self, path: &str) -> Value {
        let (head, body) = self.ask(path).unwrap();
        assert!(head.contains(" 200 "), "{path}: {head}\n{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// What a query of Prometheus finds: the labels of each series, and its value now.
    fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let mut path = "/api/v1/query?query=".to_owned();
        for byte in query.bytes() {
            let _ = write!(path, "%{byte:02x}");
        }
        let told = self.json(&path);
        let result = told["data"]["result"].as_array().unwrap().iter();
        let one = |series: &Value| {
            let value = text(&series["value"][1]).parse();
            (series["metric"].clone(), value.unwrap())
        };
        result.map(one).collect()
    }

    /// The sum over what a query finds; 0 where it finds nothing.
    fn sum(&self, query: &str) -> f64 {
        self.query(query).iter().map(|(_, value)| value).sum()
    }

    /// The pairs with goodput, as `FROM TO`.
    fn pairs_with_goodput(&self) -> Vec<String> {
        let found = self.query("linerate_goodput_bytes_per_second");
        let name = |(labels, value): &(Value, f64)| {
            assert_eq!(labels["task"], "ring", "{labels}");
            // 20 Mbit/s at most are sent.
            assert!((1e5..3.2e6).contains(value), "{labels}: {value}");
            format!("{} {}", text(&labels["source"]), text(&labels["dest"]))
        };
        let mut pairs: Vec<String> = found.iter().map(name).collect();
        pairs.sort();
        pairs
    }
}

/// Prometheus, which scrapes the hub each second. What is not scraped stays known for an hour: a series is absent sooner only if
/// a scrape found it gone.
fn prometheus(bed: &Bed, hub: &Hub) -> Program {
    let config = format!(
        "global:\n  scrape_interval: 1s\n\
         scrape_configs:\n  - job_name: linerate\n    static_configs:\n      - targets: [\"{}\"]\n",
        hub.address
    );
    let config = bed.folder.with("prometheus.yml", config);
    let words = [
        format!("--config.file={}", config.display()),
        format!("--storage.tsdb.path={}", bed.folder.file("tsdb").display()),
        "--query.lookback-delta=1h".to_owned(),
    ];
    Program::start("prometheus", &words)
}

fn assert_promtool_is_content(metrics: &str) {
    let mut tool = Command::new("promtool");
    let mut tool = start_with(tool.args(["check", "metrics"]), Stdio::piped());
    let mut input = tool.child.stdin.take().unwrap();
    input.write_all(metrics.as_bytes()).unwrap();
    drop(input);
    let done = tool.wait(LONG).expect(0);
    assert_eq!((done.out, done.error), (String::new(), String::new()));
}

#[test]
fn prometheus_scrapes_each_pair_and_a_pair_that_fails_is_absent() {
    let what = "a real Prometheus that scrapes the hub";
    if lacks_programs(what, &["prometheus", "promtool"]) {
        return;
    }
    let _beside = beside();
    let bed = Bed::new();
    bed.plan("", "");
    let hub = bed.start();
    let prometheus = prometheus(&bed, &hub);
    let up = || prometheus.query("up{job=\"linerate\"}");
    hub.wait("a scrape", || {
        up().first().is_some_and(|(_, value)| *value > 0.5)
    });
    let targets = prometheus.json("/api/v1/targets");
    let target = &targets["data"]["activeTargets"][0];
    assert_eq!(target["health"], "up", "{targets}");
    let [a, b, c] = &bed.hosts;
    let mut all = [format!("{a} {b}"), format!("{b} {c}"), format!("{c} {a}")];
    all.sort();
    hub.wait("goodput of each pair", || {
        prometheus.pairs_with_goodput() == all
    });
    assert_promtool_is_content(&hub.read("/metrics"));

    let others = "linerate_tests_total{outcome=~\"failed|not_run|invalid\"}";
    let before = prometheus.sum(others);
    bed.kill(c);
    let left = [format!("{a} {b}")];
    hub.wait("only the pair of the hosts that live", || {
        prometheus.pairs_with_goodput() == left
    });
    hub.wait("the count of tests that did not measure", || {
        prometheus.sum(others) > before
    });
    let agents = prometheus.query("linerate_agent_up == 0");
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert_eq!(agents[0].0["host"], c.as_str());
    // The pairs were absent, and never 0.
    let seen = prometheus.query("count_over_time(linerate_goodput_bytes_per_second[1h])");
    assert_eq!(seen.len(), 3, "{seen:?}");
    let lowest = prometheus.query("min_over_time(linerate_goodput_bytes_per_second[1h])");
    assert!(lowest.iter().all(|(_, value)| *value > 1e5), "{lowest:?}");
    assert_promtool_is_content(&hub.read("/metrics"));
    hub.stop();
}

#[test]
fn alertmanager_has_an_alert_for_as_long_as_it_fires() {
    let what = "a real Alertmanager that gets the hub's alerts";
    if lacks_programs(what, &["prometheus-alertmanager"]) {
        return;
    }
    let _beside = beside();
    let bed = Bed::new();
    let config = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n";
    let config = bed.folder.with("alertmanager.yml", config);
    let words = [
        format!("--config.file={}", config.display()),
        format!(
            "--storage.path={}",
            bed.folder.file("alertmanager").display()
        ),
        // No peers, and so no other port.
        "--cluster.listen-address=".to_owned(),
    ];
    let manager = Program::start("prometheus-alertmanager", &words);
    let channel = format!(
        "[[channel]]\nkind = \"alertmanager\"\nurl = \"http://{}\"\n",
        manager.address
    );
    bed.plan("expect = \">= 1G\"", &channel);
    let hub = bed.start();
    let active = || {
        let told = manager.json("/api/v2/alerts?active=true");
        told.as_array().unwrap().clone()
    };
    let mut alerts = Vec::new();
    hub.wait("an active alert", || {
        alerts = active();
        !alerts.is_empty()
    });
    let alert = &alerts[0];
    assert_eq!(alert["status"]["state"], "active", "{alert}");
    let labels = &alert["labels"];
    assert_eq!(labels["alertname"], "LinerateSlow", "{alert}");
    assert_eq!(
        (text(&labels["task"]), text(&labels["kind"])),
        ("ring", "slow")
    );
    let known = hub.json("/api/v1/alerts");
    let mut known = known["alerts"].as_array().unwrap().iter();
    assert!(known.any(|one| one["id"] == labels["alert"]), "{alert}");
    let annotations = &alert["annotations"];
    assert!(text(&annotations["summary"]).contains("slow"), "{alert}");
    assert!(!text(&annotations["description"]).is_empty(), "{alert}");
    assert!(!text(&annotations["finding"]).is_empty(), "{alert}");

    // The floor goes, and the channel stays. By itself, an alert ends some minutes after it was last sent.
    bed.plan("", &channel);
    let mut ends = text(&alert["endsAt"]).to_owned();
    hub.wait("the end of the alerts", || {
        let active = active();
        let latest = active.iter().map(|one| text(&one["endsAt"])).min();
        ends = latest.map_or(std::mem::take(&mut ends), str::to_owned);
        active.is_empty()
    });
    assert!(now() < ends, "they ended by themselves at {ends}");
    hub.stop();
}

/// As Alertmanager writes it.
fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.unwrap().as_millis();
    rfc3339(UnixMillis(millis.try_into().unwrap()))
}
