//! Many hosts against what most of them have, as text.

use linerate_model::host::{Deviation, Difference, Majority, Weight};

use crate::text::layout::Page;
use crate::words::plain;

/// Who differs from most of the others, and in what. `fold` writes hosts as one set. Without `all`, only what matters for
/// throughput is listed and the rest is counted.
pub fn report(majority: &Majority, fold: &dyn Fn(&[String]) -> String, all: bool) -> String {
    let mut page = Page::default();
    let shown = |one: &&Difference| all || matches!(one.weight, Weight::Matters { .. });
    let mut hidden = 0;
    let mut alike = majority.hosts.clone();
    let mut deviating: Vec<(&Deviation, Vec<&Difference>)> = Vec::new();
    for way in &majority.deviations {
        let differences: Vec<&Difference> = way.differences.iter().filter(shown).collect();
        hidden += way.differences.len() - differences.len();
        if !differences.is_empty() {
            alike.retain(|host| !way.hosts.contains(host));
            deviating.push((way, differences));
        }
    }
    if !alike.is_empty() {
        let what = if deviating.is_empty() {
            "nothing that matters for throughput differs"
        } else {
            "as most hosts are"
        };
        page.wrapped("", &plain(&format!("{}: {what}", fold(&alike))));
    }
    for (way, differences) in deviating {
        page.wrapped("", &plain(&format!("{}:", fold(&way.hosts))));
        for one in differences {
            page.wrapped("  ", &plain(&line(one)));
        }
    }
    if !majority.scattered.is_empty() {
        let paths: Vec<&str> = majority.scattered.iter().map(|path| short(path)).collect();
        page.gap();
        let text = format!("Different on most hosts: {}", paths.join(", "));
        page.wrapped("", &plain(&text));
    }
    if hidden > 0 {
        page.gap();
        page.line(&format!(
            "{hidden} more differ on which nothing is known to depend (--all lists them)"
        ));
    }
    page.finish()
}

fn short(path: &str) -> &str {
    path.strip_prefix("sysctls.").unwrap_or(path)
}

fn line(one: &Difference) -> String {
    let value = |value: &Option<String>| match value.as_deref() {
        None => "not there".to_owned(),
        Some("") => "none".to_owned(),
        Some(value) => value.to_owned(),
    };
    let why = match &one.weight {
        Weight::Matters { why } => format!("  ({why})"),
        _ => String::new(),
    };
    format!(
        "{} {}, others {}{why}",
        short(&one.path),
        value(&one.b),
        value(&one.a)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_are_named_with_what_the_others_have() {
        let one = |path: &str, weight| Difference {
            path: path.to_owned(),
            a: Some("053.5".to_owned()),
            b: Some("059.7".to_owned()),
            weight,
        };
        let why = "kernels differ".to_owned();
        let majority = Majority {
            hosts: ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
            deviations: vec![Deviation {
                hosts: vec!["n2".to_owned()],
                differences: vec![
                    one("system.kernel", Weight::Matters { why }),
                    one("sysctls.net.x", Weight::Other),
                ],
            }],
            scattered: vec!["sysctls.net.y".to_owned()],
        };
        let fold = |hosts: &[String]| hosts.join("+");
        assert_eq!(
            report(&majority, &fold, false),
            "n1+n3: as most hosts are\nn2:\n  system.kernel 059.7, others 053.5  (kernels differ)\n\n\
             Different on most hosts: net.y\n\n\
             1 more differ on which nothing is known to depend (--all lists them)\n"
        );
        assert!(report(&majority, &fold, true).contains("  net.x 059.7, others 053.5\n"));
    }
}
