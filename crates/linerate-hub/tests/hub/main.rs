//! The hub over a real socket.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

mod access;
mod api;
mod browser;
mod events;
mod limits;
mod metrics;
mod pages;
mod real_archive;
mod sample;
mod served;
mod webdriver;
