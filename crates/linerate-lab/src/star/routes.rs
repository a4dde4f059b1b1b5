//! Which trunk leads where.

use std::collections::VecDeque;

use super::types::Star;

impl Star {
    /// For each switch, over which of [`Star::trunks`] it reaches each other one: the fewest trunks, of equal ways the one
    /// that stands first in the file. `None` for itself, and where no way leads.
    pub fn next_trunks(&self) -> Vec<Vec<Option<usize>>> {
        let count = self.switches.len();
        let mut next = vec![vec![None; count]; count];
        for target in 0..count {
            let mut reached = vec![false; count];
            reached[target] = true;
            let mut to_visit = VecDeque::from([target]);
            while let Some(here) = to_visit.pop_front() {
                for (at, trunk) in self.trunks.iter().enumerate() {
                    let there = match trunk.between {
                        [one, other] if one == here => other,
                        [one, other] if other == here => one,
                        _ => continue,
                    };
                    if !reached[there] {
                        reached[there] = true;
                        next[there][target] = Some(at);
                        to_visit.push_back(there);
                    }
                }
            }
        }
        next
    }

    /// The first switch that another one does not reach.
    pub(super) fn unconnected(&self) -> Option<&str> {
        let next = self.next_trunks();
        let first = next.first()?;
        let lost = first.iter().skip(1).position(Option::is_none)?;
        Some(&self.switches[lost + 1].name)
    }
}

#[cfg(test)]
mod tests {
    use crate::star::Star;

    fn star(switches: usize, trunks: &[[usize; 2]]) -> Result<Star, String> {
        let mut text = "name = \"x\"\n[star]\nrate = \"1M\"\n".to_owned();
        let switch = |at| format!("[[star.switch]]\nname = \"s{at}\"\nhosts = \"h{at}\"\n");
        text.extend((0..switches).map(switch));
        text.extend(trunks.iter().map(|[one, other]| {
            format!("[[star.trunk]]\nbetween = [\"s{one}\", \"s{other}\"]\nrate = \"1M\"\n")
        }));
        Star::parse("x", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_fewest_trunks_are_taken() {
        // A line 0 - 1 - 2 - 3.
        let line = star(4, &[[0, 1], [1, 2], [2, 3]]).unwrap().next_trunks();
        assert_eq!(line[0], [None, Some(0), Some(0), Some(0)]);
        assert_eq!(line[2], [Some(1), Some(1), None, Some(2)]);
        // With a shortcut.
        let ring = star(4, &[[0, 1], [1, 2], [2, 3], [3, 0]]).unwrap();
        assert_eq!(ring.next_trunks()[0], [None, Some(0), Some(0), Some(3)]);
    }

    #[test]
    fn a_switch_that_nothing_leads_to_is_named() {
        let error = star(3, &[[0, 1]]).unwrap_err();
        assert_eq!(
            error,
            "x: no trunk leads to the switch s2: connect it by [[star.trunk]]"
        );
    }
}
