//! The readers with the rules and the report behind them, over folders of cases.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the room is pure, its fixtures are files"
)]

#[cfg(test)]
mod captures;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod oddities;
#[cfg(test)]
mod policing;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod transforms;
