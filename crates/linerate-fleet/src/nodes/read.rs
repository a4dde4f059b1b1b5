//! Text to a set of names.

use std::collections::BTreeSet;

use super::number::{self, Number};
use super::{Groups, HOLE, MOST_NAMES, NodeSet, NodesError, Numbers, fold};

/// Groups in groups in groups end here.
const DEEPEST: usize = 32;

/// Reads a file that a set names, or says why it cannot.
type ReadFile<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// What a set may refer to.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Groups of hosts.
    pub groups: &'a Groups,
    /// Reads a file by its name.
    pub file: &'a ReadFile<'a>,
}

impl Sources<'static> {
    /// No groups and no files.
    pub fn none() -> Self {
        const NONE: &Groups = &Groups::none();
        Self {
            groups: NONE,
            file: &|_| Err("files are not read here".to_owned()),
        }
    }
}

/// What is being read: the groups and files around it.
struct Reading<'a> {
    sources: &'a Sources<'a>,
    around: Vec<String>,
}

pub(super) fn set(text: &str, sources: &Sources<'_>) -> Result<NodeSet, NodesError> {
    let mut reading = Reading {
        sources,
        around: Vec::new(),
    };
    reading.set(text, None)
}

#[derive(Clone, Copy)]
enum Operator {
    Add,
    Remove,
    Intersect,
    Differ,
}

impl Operator {
    fn of(sign: char) -> Option<Self> {
        match sign {
            ',' => Some(Self::Add),
            '!' => Some(Self::Remove),
            '&' => Some(Self::Intersect),
            '^' => Some(Self::Differ),
            _ => None,
        }
    }
}

/// Operands, each with the operator before it. The first has `,`.
fn operands(text: &str) -> Result<Vec<(Operator, &str)>, NodesError> {
    let mut found = Vec::new();
    let mut operator = Operator::Add;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let operand = &rest[..end_of_operand(rest)?];
        if operand.is_empty() || operand == "^" {
            return Err(NodesError::Operand(text.to_owned()));
        }
        found.push((operator, operand));
        rest = rest[operand.len()..].trim_start();
        operator = Operator::Add;
        if let Some(next) = rest.chars().next().and_then(Operator::of) {
            operator = next;
            rest = rest[1..].trim_start();
            if rest.is_empty() {
                return Err(NodesError::Operand(text.to_owned()));
            }
        }
    }
    Ok(found)
}

/// Where the operand ends that `text` begins with: before an operator or white space outside brackets.
fn end_of_operand(text: &str) -> Result<usize, NodesError> {
    let mut inside = false;
    for (at, sign) in text.char_indices() {
        match sign {
            '[' if inside => return Err(NodesError::Bracket(text.to_owned())),
            ']' if !inside => return Err(NodesError::Bracket(text.to_owned())),
            '[' => inside = true,
            ']' => inside = false,
            '^' if at == 0 => {}
            _ if inside => {}
            _ if sign.is_whitespace() || Operator::of(sign).is_some() => return Ok(at),
            _ => {}
        }
    }
    if inside {
        return Err(NodesError::Bracket(text.to_owned()));
    }
    Ok(text.len())
}

impl Reading<'_> {
    /// `source` is where a group without a source's name is looked for: that of the group around it.
    fn set(&mut self, text: &str, source: Option<&str>) -> Result<NodeSet, NodesError> {
        let mut set = NodeSet::default();
        for (operator, operand) in operands(text)? {
            let other = self.operand(operand, source)?;
            match operator {
                Operator::Add => set.add(&other)?,
                Operator::Remove => set.remove(&other),
                Operator::Intersect => set.intersect(&other),
                Operator::Differ => set.differ(&other)?,
            }
        }
        Ok(set)
    }

    fn operand(&mut self, operand: &str, source: Option<&str>) -> Result<NodeSet, NodesError> {
        if let Some(file) = operand.strip_prefix('^') {
            let text = (self.sources.file)(file).map_err(|why| NodesError::File {
                file: file.to_owned(),
                why,
            })?;
            return self.inside(&format!("^{file}"), |reading| reading.lines(&text));
        }
        let Some(group) = operand.strip_prefix('@') else {
            return names(operand);
        };
        let (source, group) = match group.split_once(':') {
            Some((source, group)) => (Some(source), group),
            None => (source, group),
        };
        let mut set = NodeSet::default();
        for name in group_names(group)? {
            let text = self.sources.groups.find(source, &name)?;
            let label =
                source.map_or_else(|| format!("@{name}"), |source| format!("@{source}:{name}"));
            let inner = self.inside(&label, |reading| reading.set(&text, source))?;
            set.add(&inner)?;
        }
        Ok(set)
    }

    /// Reads what a group or file has.
    fn inside(
        &mut self,
        label: &str,
        read: impl FnOnce(&mut Self) -> Result<NodeSet, NodesError>,
    ) -> Result<NodeSet, NodesError> {
        if self.around.len() >= DEEPEST || self.around.iter().any(|around| around == label) {
            let chain = self.around.join(" → ");
            return Err(NodesError::Nested(format!("{chain} → {label}")));
        }
        self.around.push(label.to_owned());
        let set = read(self);
        self.around.pop();
        set
    }

    /// A set a line; `#` begins a comment.
    fn lines(&mut self, text: &str) -> Result<NodeSet, NodesError> {
        let mut set = NodeSet::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            set.add(&self.set(line, None)?)?;
        }
        Ok(set)
    }
}

fn group_names(group: &str) -> Result<Vec<String>, NodesError> {
    if group == "*" {
        return Ok(vec![group.to_owned()]);
    }
    Ok(names(group)?.names().collect())
}

/// Names without operators: text, numbers and ranges.
fn names(text: &str) -> Result<NodeSet, NodesError> {
    let mut pattern = String::new();
    let mut vector: fold::Vector = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some((before, after)) = rest.split_once('[') else {
            literal(rest, &mut pattern, &mut vector)?;
            break;
        };
        let (inside, after) = after
            .split_once(']')
            .ok_or_else(|| NodesError::Bracket(text.to_owned()))?;
        // Digits beside a bracket belong to each number in it.
        let plain = before.trim_end_matches(|sign: char| sign.is_ascii_digit());
        literal(plain, &mut pattern, &mut vector)?;
        let leading = &before[plain.len()..];
        let tail = after.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let trailing = &after[..after.len() - tail.len()];
        if tail.starts_with('[') {
            return Err(NodesError::Bracket(text.to_owned()));
        }
        let numbers = number::ranges(inside)?;
        let whole: Result<BTreeSet<Number>, _> = numbers
            .iter()
            .map(|number| number.between(leading, trailing))
            .collect();
        pattern.push_str(HOLE);
        vector.push(whole?);
        rest = tail;
    }
    let sizes = vector.iter().map(BTreeSet::len);
    let many = sizes.fold(1_usize, usize::saturating_mul);
    if many > MOST_NAMES {
        return Err(NodesError::TooMany);
    }
    is_host(text, &pattern)?;
    let numbers: BTreeSet<Numbers> = fold::product(&vector).into_iter().collect();
    Ok(NodeSet {
        patterns: [(pattern, numbers)].into(),
    })
}

/// Text without brackets: its numbers become holes.
fn literal(text: &str, pattern: &mut String, vector: &mut fold::Vector) -> Result<(), NodesError> {
    let mut rest = text;
    while !rest.is_empty() {
        let tail = rest.trim_start_matches(|sign: char| !sign.is_ascii_digit());
        pattern.push_str(&rest[..rest.len() - tail.len()]);
        let next = tail.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let digits = &tail[..tail.len() - next.len()];
        if !digits.is_empty() {
            pattern.push_str(HOLE);
            vector.push([Number::read(digits)?].into());
        }
        rest = next;
    }
    Ok(())
}

/// Whether names of this pattern are those of hosts. None can be taken for an option of a program, or for a path.
fn is_host(text: &str, pattern: &str) -> Result<(), NodesError> {
    let refused = |why| {
        Err(NodesError::Name {
            name: text.to_owned(),
            why,
        })
    };
    let plain = pattern.replace(HOLE, "0");
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || ".-_:@".contains(sign);
    if plain.starts_with(['-', '.', ':']) {
        refused("it begins with '-', '.' or ':'")
    } else if plain.contains(['*', '?']) {
        refused("wildcards are not supported")
    } else if text.contains('%') || !plain.chars().all(allowed) {
        refused("a character is not allowed")
    } else if plain.len() > 253 {
        refused("it is longer than 253 characters")
    } else if plain.ends_with('@') || plain.contains("@-") {
        refused("the host after '@' is missing")
    } else {
        Ok(())
    }
}
