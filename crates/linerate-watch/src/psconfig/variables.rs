//! Variables in a test's specification: `{% address[0] %}`.

use std::net::Ipv6Addr;

use serde_json::Value;

use super::groups::Combination;

/// What the variables of one test stand for.
pub(super) struct Variables<'a, 't> {
    pub(super) ends: &'a Combination<'t>,
    /// The end that schedules the test: a place in `ends`.
    pub(super) scheduled_by: usize,
    pub(super) flip: bool,
}

impl Variables<'_, '_> {
    /// A value with its variables replaced. A variable that is alone in a string keeps its type.
    ///
    /// # Errors
    /// The variable that cannot be replaced, and why.
    pub(super) fn expand(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.expand_text(text),
            other => Ok(other.clone()),
        }
    }

    fn expand_text(&self, text: &str) -> Result<Value, String> {
        if let Some((0, end, name)) = variable(text)
            && end == text.len()
        {
            return self.value(name);
        }
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((start, end, name)) = variable(rest) {
            expanded.push_str(&rest[..start]);
            match self.value(name)? {
                Value::String(value) => expanded.push_str(&value),
                other => expanded.push_str(&other.to_string()),
            }
            rest = &rest[end..];
        }
        expanded.push_str(rest);
        Ok(Value::String(expanded))
    }

    fn value(&self, name: &str) -> Result<Value, String> {
        let unknown = || format!("the variable '{name}' is not known");
        let text = |text: Option<&str>| {
            text.map(|text| Value::String(text.to_owned()))
                .ok_or_else(|| format!("'{name}' has no address"))
        };
        match name {
            "flip" => return Ok(Value::Bool(self.flip)),
            // The host that schedules a test is the one on which it begins.
            "scheduled_by_address" | "localhost" => return text(self.address(self.scheduled_by)?),
            _ => {}
        }
        if name.starts_with("jq ") {
            return Err("variables with jq are not read".to_owned());
        }
        let (name, index) = name
            .strip_suffix(']')
            .and_then(|name| name.split_once('['))
            .ok_or_else(unknown)?;
        let index: usize = index.parse().map_err(|_| unknown())?;
        let end = self.ends.get(index);
        let end = end.ok_or_else(|| format!("'{name}[{index}]' is of an end that is not there"))?;
        match name {
            "address" => text(end.own.address.as_deref()),
            "lead_bind_address" => {
                let bind = end.own.lead_bind_address.as_deref();
                text(bind.or(end.own.address.as_deref()))
            }
            "pscheduler_address" => {
                let node = end.own.pscheduler_address.as_deref();
                let node = node.or(end.own.address.as_deref());
                match node {
                    Some(node) if node.parse::<Ipv6Addr>().is_ok() => {
                        Ok(Value::String(format!("[{node}]")))
                    }
                    node => text(node),
                }
            }
            _ => Err(unknown()),
        }
    }

    fn address(&self, end: usize) -> Result<Option<&str>, String> {
        let end = self.ends.get(end).ok_or("a test without ends")?;
        Ok(end.own.address.as_deref())
    }
}

/// Whether a value has a variable in it.
pub(super) fn has_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| variable(text).is_some())
}

/// The first variable of a text: where it begins and ends, and its name. Blanks stand on both sides of the name.
fn variable(text: &str) -> Option<(usize, usize, &str)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find("{%")?;
        let end = start + 2 + text[start + 2..].find("%}")? + 2;
        let inner = &text[start + 2..end - 2];
        let name = inner.trim();
        let blanks = inner.starts_with(char::is_whitespace) && inner.ends_with(char::is_whitespace);
        if blanks && !name.is_empty() {
            return Some((start, end, name));
        }
        from = start + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn a_variable_has_blanks_on_both_sides_of_its_name() {
        assert_eq!(variable("{% a %}"), Some((0, 7, "a")));
        assert_eq!(variable("x{%  a[0]\t%}y"), Some((1, 12, "a[0]")));
        assert_eq!(variable("{%a%} {% b %}"), Some((6, 13, "b")));
        for none in [
            "", "{% %}", "{%%}", "{%}", "{%}%}", "{%a%}", "{% a", "a %}", "{%", "é{% é",
        ] {
            assert_eq!(variable(none), None, "{none}");
        }
    }
}
