//! Defines the GPU architectures ([`Arch`]): their names, and the devices that run their code. The
//! condition under which an atom exists is an [`ArchReq`]: an architecture and later ones, or
//! exactly one.
//!
//! Invariant: only this file compares architectures. `sm_90a` has instructions that later
//! architectures do not keep, so "later" does not imply "has more". [`Arch`] therefore does not
//! implement `Ord`; use [`ArchReq::supports`].

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::fmt;
use std::str::FromStr;

/// A GPU architecture of the atom table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// Volta, compute capability 7.0.
    Sm70,
    /// Turing, 7.5.
    Sm75,
    /// Ampere, 8.0.
    Sm80,
    /// Ampere, 8.6.
    Sm86,
    /// Ada, 8.9.
    Sm89,
    /// Hopper, 9.0: the features that later architectures keep.
    Sm90,
    /// Hopper with the features that only 9.0 has.
    Sm90a,
}

impl Arch {
    /// Every architecture, oldest first.
    pub const ALL: &'static [Arch] =
        &[Arch::Sm70, Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm90a];

    /// `sm_80`
    pub fn as_str(self) -> &'static str {
        match self {
            Arch::Sm70 => "sm_70",
            Arch::Sm75 => "sm_75",
            Arch::Sm80 => "sm_80",
            Arch::Sm86 => "sm_86",
            Arch::Sm89 => "sm_89",
            Arch::Sm90 => "sm_90",
            Arch::Sm90a => "sm_90a",
        }
    }

    /// The value of NVRTC's `--gpu-architecture` for machine code: `sm_80`.
    pub fn nvrtc_name(self) -> &'static str {
        self.as_str()
    }

    /// The value of NVRTC's `--gpu-architecture` for PTX: `compute_80`.
    pub fn compute_name(self) -> &'static str {
        match self {
            Arch::Sm70 => "compute_70",
            Arch::Sm75 => "compute_75",
            Arch::Sm80 => "compute_80",
            Arch::Sm86 => "compute_86",
            Arch::Sm89 => "compute_89",
            Arch::Sm90 => "compute_90",
            Arch::Sm90a => "compute_90a",
        }
    }

    /// Major and minor compute capability.
    pub fn capability(self) -> (u32, u32) {
        match self {
            Arch::Sm70 => (7, 0),
            Arch::Sm75 => (7, 5),
            Arch::Sm80 => (8, 0),
            Arch::Sm86 => (8, 6),
            Arch::Sm89 => (8, 9),
            Arch::Sm90 | Arch::Sm90a => (9, 0),
        }
    }

    /// Whether a device with this compute capability runs code that is compiled for this
    /// architecture. Machine code runs on later minor versions of the same major version. PTX runs
    /// on all later versions. Features of `sm_90a` exist on one version only and bind both kinds of
    /// code to it.
    pub fn runs_on(self, device: (u32, u32), machine_code: bool) -> bool {
        let own = self.capability();
        match self {
            Arch::Sm90a => device == own,
            _ if machine_code => device.0 == own.0 && device.1 >= own.1,
            _ => device >= own,
        }
    }

    /// The later one of the two architectures.
    pub(crate) fn later(self, other: Arch) -> Arch {
        if self.rank() < other.rank() { other } else { self }
    }

    /// Position in [`Arch::ALL`]. `sm_90a` comes after `sm_90`.
    fn rank(self) -> usize {
        Arch::ALL.iter().position(|a| *a == self).unwrap_or(0)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(text: &str) -> Result<Self, UnknownArch> {
        let found = Arch::ALL.iter().find(|a| a.as_str() == text);
        found.copied().ok_or_else(|| UnknownArch { found: text.to_owned() })
    }
}

/// The error for a name that is no architecture of the atom table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArch {
    /// The text.
    pub found: String,
}

impl UnknownArch {
    /// `V0226`
    pub fn code(&self) -> Code {
        Code::UnknownArch
    }

    /// The help of the message: the known names.
    pub fn help(&self) -> String {
        let known: Vec<String> = Arch::ALL.iter().map(|a| format!("`{a}`")).collect();
        format!("use one of {}", known.join(", "))
    }

    /// The error about the name at `span`.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        Diagnostic::new(self.code(), span, self.to_string())
            .label("unknown architecture")
            .help(self.help())
    }
}

impl fmt::Display for UnknownArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may be long; the message shows its first 32 characters.
        let shown: String = self.found.chars().take(32).collect();
        write!(f, "unknown architecture `{shown}`")
    }
}

impl std::error::Error for UnknownArch {}

/// The requirement of an atom on the architecture.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArchReq {
    /// This architecture and later ones.
    Since(Arch),
    /// This architecture only. The features of `sm_90a` exist on no other.
    Exactly(Arch),
}

impl ArchReq {
    /// Whether `arch` meets the requirement.
    pub fn supports(self, arch: Arch) -> bool {
        match self {
            ArchReq::Since(first) => arch.rank() >= first.rank(),
            ArchReq::Exactly(only) => arch == only,
        }
    }
}

impl fmt::Display for ArchReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchReq::Since(first) => write!(f, "{first} and later"),
            ArchReq::Exactly(only) => write!(f, "{only} only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &arch in Arch::ALL {
            assert_eq!(arch.to_string().parse(), Ok(arch));
            assert_eq!(arch.nvrtc_name().replace("sm", "compute"), arch.compute_name());
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let err = "sm_99".parse::<Arch>().unwrap_err();
        assert_eq!(err.code().as_str(), "V0226");
        assert_eq!(err.to_string(), "unknown architecture `sm_99`");
        for arch in Arch::ALL {
            assert!(err.help().contains(&format!("`{arch}`")));
        }
        assert!("".parse::<Arch>().is_err());
        assert!("SM_80".parse::<Arch>().is_err());
    }

    #[test]
    fn devices_run_what_is_compiled_for_them() {
        assert!(Arch::Sm80.runs_on((8, 6), true) && !Arch::Sm86.runs_on((8, 0), true));
        assert!(!Arch::Sm80.runs_on((9, 0), true) && Arch::Sm80.runs_on((9, 0), false));
        assert!(Arch::Sm90a.runs_on((9, 0), true) && !Arch::Sm90a.runs_on((10, 0), false));
        for arch in Arch::ALL {
            assert!(
                arch.runs_on(arch.capability(), true) && arch.runs_on(arch.capability(), false)
            );
        }
    }

    #[test]
    fn requirements() {
        let since = ArchReq::Since(Arch::Sm80);
        let exact = ArchReq::Exactly(Arch::Sm90a);
        let supported = |r: ArchReq| -> Vec<&str> {
            Arch::ALL.iter().filter(|a| r.supports(**a)).map(|a| a.as_str()).collect()
        };
        assert_eq!(supported(since), ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]);
        assert_eq!(supported(ArchReq::Since(Arch::Sm90)), ["sm_90", "sm_90a"]);
        assert_eq!(supported(exact), ["sm_90a"]);
    }
}
