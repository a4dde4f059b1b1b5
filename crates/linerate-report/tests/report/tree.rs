//! A strict reader of the markup that reports are written in: every tag is closed, every attribute quoted.

/// An element or a piece of text.
#[derive(Debug)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) tag: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) inside: Vec<Node>,
}

/// Elements of HTML that have no end.
const VOID: [&str; 3] = ["meta", "link", "input"];

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// All elements below it, itself first.
    pub(crate) fn all(&self) -> Vec<&Element> {
        let mut found = vec![self];
        for node in &self.inside {
            if let Node::Element(element) = node {
                found.extend(element.all());
            }
        }
        found
    }

    pub(crate) fn with(&self, tag: &str) -> Vec<&Element> {
        let all = self.all().into_iter();
        all.filter(|element| element.tag == tag).collect()
    }

    /// The first element of a class.
    pub(crate) fn of_class(&self, class: &str) -> Vec<&Element> {
        let has = |element: &Element| {
            let classes = element.attribute("class").unwrap_or_default();
            classes.split(' ').any(|own| own == class)
        };
        self.all()
            .into_iter()
            .filter(|element| has(element))
            .collect()
    }

    /// Its text, entities decoded.
    pub(crate) fn text(&self) -> String {
        let pieces = self.inside.iter().map(|node| match node {
            Node::Text(text) => text.clone(),
            Node::Element(element) => element.text(),
        });
        pieces.collect()
    }
}

/// Reads a document, and fails where it is not well formed.
pub(crate) fn parse(text: &str) -> Element {
    let text = text.strip_prefix("<!DOCTYPE html>\n").unwrap_or(text);
    let mut open = vec![Element::default()];
    let mut rest = text;
    while !rest.is_empty() {
        let Some(after) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            push(&mut open, Node::Text(decoded(&rest[..end])));
            rest = &rest[end..];
            continue;
        };
        if let Some(closing) = after.strip_prefix('/') {
            let end = closing.find('>').expect("a closing tag ends");
            let element = open.pop().expect("a closing tag has an opening one");
            assert_eq!(element.tag, closing[..end], "tags nest");
            push(&mut open, Node::Element(element));
            rest = &closing[end + 1..];
            continue;
        }
        let (element, leaf, after) = tag(after);
        if leaf || VOID.contains(&element.tag.as_str()) {
            push(&mut open, Node::Element(element));
            rest = after;
        } else if element.tag == "script" || element.tag == "style" {
            let ends = format!("</{}>", element.tag);
            let end = after.find(&ends).expect("a script ends");
            let inside = vec![Node::Text(after[..end].to_owned())];
            push(&mut open, Node::Element(Element { inside, ..element }));
            rest = &after[end + ends.len()..];
        } else {
            open.push(element);
            rest = after;
        }
    }
    assert_eq!(open.len(), 1, "all tags are closed");
    open.pop().expect("the document")
}

fn push(open: &mut [Element], node: Node) {
    let innermost = open.last_mut().expect("the document is open");
    innermost.inside.push(node);
}

/// A tag after its `<`: the element, whether it ends in itself, and what follows.
fn tag(text: &str) -> (Element, bool, &str) {
    let name = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        end.unwrap_or(text.len())
    };
    let end = name(text);
    assert!(end > 0, "a tag has a name: {text:.40}");
    let mut element = Element {
        tag: text[..end].to_owned(),
        ..Element::default()
    };
    let mut rest = &text[end..];
    loop {
        if let Some(after) = rest.strip_prefix("/>") {
            return (element, true, after);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (element, false, after);
        }
        rest = rest
            .strip_prefix(' ')
            .unwrap_or_else(|| panic!("a space before an attribute: {rest:.40}"));
        let end = name(rest);
        let value = rest[end..]
            .strip_prefix("=\"")
            .unwrap_or_else(|| panic!("an attribute has a quoted value: {rest:.40}"));
        let length = value.find('"').expect("an attribute's value ends");
        assert!(!value[..length].contains('<'), "no tag within a value");
        element
            .attributes
            .push((rest[..end].to_owned(), decoded(&value[..length])));
        rest = &value[length + 1..];
    }
}

fn decoded(text: &str) -> String {
    let mut rest = text;
    let mut decoded = String::new();
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let entities = [
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&amp;", '&'),
            ("&quot;", '"'),
            ("&#39;", '\''),
        ];
        let (entity, c) = entities
            .into_iter()
            .find(|(entity, _)| rest[at..].starts_with(entity))
            .unwrap_or_else(|| panic!("an entity: {:.20}", &rest[at..]));
        decoded.push(c);
        rest = &rest[at + entity.len()..];
    }
    decoded.push_str(rest);
    decoded
}
