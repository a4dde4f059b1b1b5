//! What rsync, scp, mbuffer and iperf3's `-F` say at their end.

use linerate_model::storage::{CopySummary, CopyTool};
use linerate_model::transcript::Part;

use crate::Input;
use crate::number::{printed, size_factor};

pub(super) fn take(input: &Input<'_>, words: &[&str], parts: &mut Vec<Part>) -> bool {
    // rsync's second line belongs to its first.
    if let ["total", "size", "is", size, "speedup", "is", ..] = words {
        if let Some(Part::Copies(all)) = parts.last_mut()
            && let Some(last) = all.last_mut()
        {
            last.file_bytes = plain(size);
            return true;
        }
        return false;
    }
    let Some(copied) = rsync(words)
        .or_else(|| scp(words))
        .or_else(|| mbuffer(input.text, words))
        .or_else(|| iperf3(words))
        .or_else(|| found(words))
    else {
        return false;
    };
    let copied = CopySummary {
        line: input.number,
        ..copied
    };
    match parts.last_mut() {
        Some(Part::Copies(all)) => all.push(copied),
        _ => parts.push(Part::Copies(vec![copied])),
    }
    true
}

fn copied(tool: CopyTool) -> CopySummary {
    CopySummary {
        line: 0,
        tool,
        name: "".into(),
        bytes: None,
        file_bytes: None,
        bytes_per_second: None,
        buffer_percent: None,
    }
}

/// `1,234,567`, `1.234.567` where the locale parts so, `12.3M` with `-h`.
fn plain(text: &str) -> Option<f64> {
    let text = text.trim_end_matches(['.', ',']);
    let (digits, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let factor = match unit {
        "" => 1.0,
        "K" | "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    printed(&digits.replace(',', "")).map(|number| number.value * factor)
}

/// `sent 1,234 bytes  received 35 bytes  2,538.00 bytes/sec`.
fn rsync(words: &[&str]) -> Option<CopySummary> {
    let [
        "sent",
        sent,
        "bytes",
        "received",
        received,
        "bytes",
        rate,
        "bytes/sec",
    ] = words
    else {
        return None;
    };
    Some(CopySummary {
        bytes: Some(plain(sent)? + plain(received)?),
        bytes_per_second: Some(plain(rate)?),
        ..copied(CopyTool::Rsync)
    })
}

/// `file.bin  100%  200MB  50.1MB/s   00:04`: units of 1024.
fn scp(words: &[&str]) -> Option<CopySummary> {
    let [name @ .., share, amount, rate, time] = words else {
        return None;
    };
    if name.is_empty() || !share.ends_with('%') || !time.contains(':') {
        return None;
    }
    let size = |text: &str| {
        let at = text.find(|c: char| c.is_ascii_alphabetic());
        let (digits, unit) = at.map_or((text, "B"), |at| text.split_at(at));
        Some(printed(digits)?.value * size_factor(unit)?)
    };
    Some(CopySummary {
        name: name.join(" ").into(),
        bytes: Some(size(amount)?),
        bytes_per_second: Some(size(rate.strip_suffix("/s")?)?),
        ..copied(CopyTool::Scp)
    })
}

/// `summary:  200 MiByte in  1.5sec - average of  133 MiB/s, 98% full`.
fn mbuffer(text: &str, words: &[&str]) -> Option<CopySummary> {
    let rest = text.strip_prefix("mbuffer: ").unwrap_or(text);
    let ["summary:", amount, unit, ..] = rest.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let unit = unit.replace("iByte", "iB").replace("Byte", "B");
    let at = words.iter().position(|word| *word == "of")?;
    let rate_unit = words
        .get(at + 2)?
        .trim_end_matches(',')
        .strip_suffix("/s")?;
    let full = text
        .split_whitespace()
        .zip(text.split_whitespace().skip(1))
        .find(|(_, word)| word.starts_with("full"));
    Some(CopySummary {
        bytes: Some(printed(amount)?.value * size_factor(&unit)?),
        bytes_per_second: Some(printed(words.get(at + 1)?)?.value * size_factor(rate_unit)?),
        buffer_percent: full
            .and_then(|(share, _)| printed(share.strip_suffix('%')?))
            .map(|share| share.value),
        ..copied(CopyTool::Mbuffer)
    })
}

/// `Sent  200 MByte / 16.0 MByte (1250%) of /t/small/out`.
fn iperf3(words: &[&str]) -> Option<CopySummary> {
    let [
        "Sent" | "Received",
        amount,
        unit,
        "/",
        whole,
        whole_unit,
        _,
        "of",
        name @ ..,
    ] = words
    else {
        return None;
    };
    Some(CopySummary {
        name: name.join(" ").into(),
        bytes: Some(printed(amount)?.value * size_factor(unit)?),
        file_bytes: Some(printed(whole)?.value * size_factor(whole_unit)?),
        ..copied(CopyTool::Iperf3)
    })
}

/// `… output 415105024 of 419430400 bytes.`: what the file has of what was sent.
fn found(words: &[&str]) -> Option<CopySummary> {
    let [.., "output", has, "of", sent, "bytes" | "bytes."] = words else {
        return None;
    };
    Some(CopySummary {
        bytes: Some(plain(sent)?),
        file_bytes: Some(plain(has)?),
        ..copied(CopyTool::File)
    })
}
