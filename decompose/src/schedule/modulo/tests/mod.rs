//! The search against brute force, and loops whose schedules are known.

mod brute;
mod known;
mod random;
