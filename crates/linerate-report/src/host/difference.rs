//! What differs between two hosts, as text.

use linerate_model::host::{Difference, Differences, Weight};

use crate::text::layout::Page;
use crate::words::{self, plain};

/// What matters first, then what else differs; noise is counted, and listed with `all`.
pub fn report(differences: &Differences, names: (&str, &str), all: bool) -> String {
    let mut page = Page::default();
    page.line(&format!(
        "linerate host diff: {} | {}",
        plain(names.0),
        plain(names.1)
    ));
    for (a, b) in &differences.pairs {
        page.entry("Paired", &plain(&format!("{a} | {b}, called {a} below")));
    }
    let of = |wanted: fn(&Weight) -> bool| -> Vec<&Difference> {
        differences
            .differences
            .iter()
            .filter(|one| wanted(&one.weight))
            .collect()
    };
    let matters = of(|weight| matches!(weight, Weight::Matters { .. }));
    let unknown = of(|weight| *weight == Weight::Unknown);
    let other = of(|weight| *weight == Weight::Other);
    let noise = of(|weight| *weight == Weight::Noise);
    page.gap();
    if matters.is_empty() {
        page.line("Nothing that matters for throughput differs.");
    } else {
        section(&mut page, "Matters for throughput", &matters);
    }
    section(
        &mut page,
        "Differs, and nothing is known to depend on it",
        &other,
    );
    section(&mut page, "Known of one host only", &unknown);
    if all {
        section(&mut page, "Noise: counters, names, addresses", &noise);
    }
    page.gap();
    page.line(&format!(
        "{} matter, {} others, {} not comparable, {} noise{}",
        matters.len(),
        other.len(),
        unknown.len(),
        noise.len(),
        words::when(!all, " (--all lists it)")
    ));
    page.finish()
}

fn section(page: &mut Page, title: &str, differences: &[&Difference]) {
    if differences.is_empty() {
        return;
    }
    page.gap();
    page.line(title);
    for one in differences {
        let value = |value: &Option<String>| {
            let value = value.as_deref().unwrap_or("not there");
            if value.is_empty() { "none" } else { value }.to_owned()
        };
        let why = match &one.weight {
            Weight::Matters { why } => format!("  ({why})"),
            _ => String::new(),
        };
        let path = one.path.strip_prefix("sysctls.").unwrap_or(&one.path);
        let text = format!("{path}: {} | {}{why}", value(&one.a), value(&one.b));
        page.wrapped("  ", &plain(&text));
    }
}
