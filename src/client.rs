//! To be written.

pub mod machine;
