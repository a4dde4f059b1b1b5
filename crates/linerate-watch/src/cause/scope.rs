//! Everything that a mesh can be slow at: the cells that each of it touches.

use std::collections::BTreeSet;

use linerate_model::mesh::{Mesh, MeshCauseKind, MeshDirection, MeshGroup, MeshGroupKind};

use super::matrix::Matrix;

/// Something that may be the cause, and the cells that it touches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scope {
    pub(super) kind: MeshCauseKind,
    pub(super) name: String,
    pub(super) direction: MeshDirection,
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// Its cells in parts that may be slow by different amounts: what its hosts send, what they receive.
    pub(super) blocks: Vec<Vec<usize>>,
    /// Of a group the cells of each of its members. Each of them has to be slow.
    pub(super) members: Vec<Vec<usize>>,
}

impl Scope {
    /// All cells, each once.
    pub(super) fn cells(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().flatten().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// One pair, or both of its directions.
    pub(super) fn pair(mesh: &Mesh, cells: &[(usize, usize, usize)]) -> Option<Self> {
        let &(from, to, _) = cells.first()?;
        let both = cells.len() > 1;
        let sign = if both { "<>" } else { ">" };
        Some(Self {
            kind: MeshCauseKind::Pair,
            name: format!("{} {sign} {}", mesh.hosts[from].name, mesh.hosts[to].name),
            direction: if both {
                MeshDirection::Both
            } else {
                MeshDirection::Out
            },
            from: vec![from],
            to: vec![to],
            blocks: cells.iter().map(|&(_, _, cell)| vec![cell]).collect(),
            members: Vec::new(),
        })
    }
}

/// Hosts, groups and trunks, those that explain with the fewest words first.
pub(super) fn all(mesh: &Mesh, matrix: &Matrix) -> Vec<Scope> {
    let hosts = (0..matrix.hosts).flat_map(|host| of_host(mesh, matrix, host));
    let groups = groups(mesh)
        .into_iter()
        .flat_map(|group| of_group(matrix, group));
    let scopes = hosts.chain(groups).chain(trunks(mesh, matrix));
    scopes
        .filter(|scope| scope.blocks.iter().all(|block| !block.is_empty()))
        .collect()
}

const DIRECTIONS: [MeshDirection; 3] = [MeshDirection::Both, MeshDirection::Out, MeshDirection::In];

fn of_host(mesh: &Mesh, matrix: &Matrix, host: usize) -> impl Iterator<Item = Scope> {
    let name = mesh.hosts[host].name.to_string();
    let others: Vec<usize> = (0..matrix.hosts).collect();
    let out = between(matrix, &[host], &others);
    let into = between(matrix, &others, &[host]);
    DIRECTIONS.into_iter().map(move |direction| Scope {
        kind: match direction {
            MeshDirection::Out => MeshCauseKind::HostOut,
            MeshDirection::In => MeshCauseKind::HostIn,
            MeshDirection::Both => MeshCauseKind::Host,
        },
        name: name.clone(),
        direction,
        from: vec![host],
        to: Vec::new(),
        blocks: match direction {
            MeshDirection::Out => vec![out.clone()],
            MeshDirection::In => vec![into.clone()],
            MeshDirection::Both => vec![out.clone(), into.clone()],
        },
        members: Vec::new(),
    })
}

/// Groups of several hosts, not of nearly all; one of those with the same members.
fn groups(mesh: &Mesh) -> Vec<&MeshGroup> {
    let mut seen = BTreeSet::new();
    let several = |group: &&MeshGroup| {
        let exist = group.members.iter().all(|&host| host < mesh.hosts.len());
        exist && group.members.len() >= 2 && group.members.len() + 2 <= mesh.hosts.len()
    };
    let groups = mesh.groups.iter().filter(several);
    groups
        .filter(|group| seen.insert(group.members.clone()))
        .collect()
}

/// A group's name: that of a place alone, that of a fact with what it is.
pub(super) fn name_of(group: &MeshGroup) -> String {
    match group.kind {
        MeshGroupKind::Place => group.name.to_string(),
        MeshGroupKind::Fact => format!("{} {}", group.of, group.name),
    }
}

fn of_group<'a>(matrix: &'a Matrix, group: &'a MeshGroup) -> impl Iterator<Item = Scope> + 'a {
    let hosts: Vec<usize> = (0..matrix.hosts).collect();
    let (inside, outside): (Vec<usize>, Vec<usize>) =
        hosts.iter().partition(|host| group.members.contains(host));
    let out = between(matrix, &inside, &outside);
    let into = between(matrix, &outside, &inside);
    let within = between(matrix, &inside, &inside);
    let sends = |host: usize| between(matrix, &[host], &hosts);
    let receives = |host: usize| between(matrix, &hosts, &[host]);
    let of_members =
        |cells: &dyn Fn(usize) -> Vec<usize>| inside.iter().map(|&host| cells(host)).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = (of_members(&sends), of_members(&receives));
    DIRECTIONS.into_iter().map(move |direction| Scope {
        kind: MeshCauseKind::Group,
        name: name_of(group),
        direction,
        from: inside.clone(),
        to: Vec::new(),
        blocks: match direction {
            MeshDirection::Out => vec![[out.clone(), within.clone()].concat()],
            MeshDirection::In => vec![[into.clone(), within.clone()].concat()],
            MeshDirection::Both if within.is_empty() => vec![out.clone(), into.clone()],
            MeshDirection::Both => vec![out.clone(), into.clone(), within.clone()],
        },
        members: match direction {
            MeshDirection::Out => senders.clone(),
            MeshDirection::In => receivers.clone(),
            MeshDirection::Both => [senders.clone(), receivers.clone()].concat(),
        },
    })
}

/// The links between places: of each two, and of each with all others.
fn trunks(mesh: &Mesh, matrix: &Matrix) -> Vec<Scope> {
    let places: Vec<&MeshGroup> = mesh
        .groups
        .iter()
        .filter(|group| {
            let exist = group.members.iter().all(|&host| host < matrix.hosts);
            group.kind == MeshGroupKind::Place && exist && group.members.len() >= 2
        })
        .collect();
    let mut scopes = Vec::new();
    for (place, one) in places.iter().enumerate() {
        let others: Vec<usize> = (0..matrix.hosts)
            .filter(|host| !one.members.contains(host))
            .collect();
        let siblings = places[place + 1..]
            .iter()
            .filter(|other| other.of == one.of);
        for other in siblings {
            let disjoint = one.members.iter().all(|host| !other.members.contains(host));
            if disjoint {
                let names = (one.name.as_str(), other.name.as_str());
                scopes.extend(trunk(matrix, names, &one.members, &other.members));
            }
        }
        let is_a_sibling = |other: &&&MeshGroup| other.of == one.of && other.members == others;
        if others.len() >= 2 && !places.iter().any(|other| is_a_sibling(&other)) {
            scopes.extend(trunk(
                matrix,
                (one.name.as_str(), "others"),
                &one.members,
                &others,
            ));
        }
    }
    scopes
}

fn trunk(matrix: &Matrix, names: (&str, &str), one: &[usize], other: &[usize]) -> [Scope; 3] {
    let there = between(matrix, one, other);
    let back = between(matrix, other, one);
    let scope =
        |sign: &str, direction, names: (&str, &str), ends: (&[usize], &[usize]), blocks| Scope {
            kind: MeshCauseKind::Trunk,
            name: format!("{} {sign} {}", names.0, names.1),
            direction,
            from: ends.0.to_vec(),
            to: ends.1.to_vec(),
            blocks,
            members: Vec::new(),
        };
    let reversed = (names.1, names.0);
    [
        scope(
            "<>",
            MeshDirection::Both,
            names,
            (one, other),
            vec![there.clone(), back.clone()],
        ),
        scope(">", MeshDirection::Out, names, (one, other), vec![there]),
        scope(">", MeshDirection::Out, reversed, (other, one), vec![back]),
    ]
}

/// The cells from any of the first hosts to any of the second.
pub(super) fn between(matrix: &Matrix, from: &[usize], to: &[usize]) -> Vec<usize> {
    let cells_of = |&one: &usize| to.iter().filter_map(move |&other| matrix.at(one, other));
    from.iter().flat_map(cells_of).collect()
}
