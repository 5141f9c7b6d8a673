//! Defines [`Diagnostic`], an error or a warning. Each has a code, a headline and a place with a
//! label, and possibly other places, a help, and edits that implement the help. Every stage reports
//! them; the command line and the Python package show them. [`Diagnostics`] is a bounded list of
//! them, and [`nearest`] suggests a word for a misspelled one.
//!
//! [`Code::ALL`] lists all codes: a letter for the family, a number, and a summary of one sentence.
//! `P` parse, `V` verify, `L` layout algebra, `K` layout calculator, `D` decompose, `C` code
//! generation, `S` simulate, `T` synchronization, `G` draw, `R` run, `X` limits, `I` internal
//! defects.

use crate::span::Span;
use std::fmt;

/// Whether a diagnostic prevents the result.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The operation has no result.
    Error,
    /// The operation has a result, which may differ from the intended one.
    Warning,
}

/// A change of the text at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The text to replace. An empty span inserts.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Edit {
    /// Replaces the text of a span.
    pub fn new(span: Span, text: impl Into<String>) -> Self {
        Edit { span, text: text.into() }
    }

    /// The first byte that is replaced.
    pub fn start(&self) -> usize {
        self.span.start as usize
    }

    /// One past the last byte that is replaced.
    pub fn end(&self) -> usize {
        self.span.end as usize
    }

    /// The text after all edits. `None` if two edits overlap or one lies outside of the text.
    pub fn apply(edits: &[Edit], text: &str) -> Option<String> {
        let mut edits: Vec<&Edit> = edits.iter().collect();
        edits.sort_by_key(|e| e.start());
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for e in edits {
            out.push_str(text.get(at..e.start())?);
            out.push_str(&e.text);
            text.get(e.start()..e.end())?;
            at = e.end();
        }
        out.push_str(text.get(at..)?);
        Some(out)
    }
}

/// An error about a program, or a warning.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The error code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Headline: lower case, names in backticks, no full stop.
    pub message: String,
    /// The place.
    pub span: Span,
    /// A short description of the text at the place.
    pub label: String,
    /// Other places, each with its role in the error.
    pub related: Vec<(Span, String)>,
    /// An action that fixes the error.
    pub help: Option<String>,
    /// The help as edits, to be applied together. Empty if the help is not an edit.
    pub edits: Vec<Edit>,
    /// Further lines, such as rejected atoms.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            span,
            label: code.here().to_owned(),
            related: vec![],
            help: None,
            edits: vec![],
            notes: vec![],
        }
    }
    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::new(code, span, message) }
    }
    /// Adds a note with the origin of the spec (`loc=`), unless there is such a note.
    pub fn comes_from(&mut self, loc: &str) {
        if !self.notes.iter().any(|note| Diagnostic::is_origin(note)) {
            self.notes.push(format!("{ORIGIN}{loc} (`loc=` of this spec)"));
        }
    }
    /// Whether a note is the origin of a spec.
    pub fn is_origin(note: &str) -> bool {
        note.starts_with(ORIGIN)
    }
    /// Describes the text at the place. An empty label leaves the general one of the code.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        let label = label.into();
        if !label.is_empty() {
            self.label = label;
        }
        self
    }
    /// Whether the label says more than the general one of the code.
    pub fn is_labeled(&self) -> bool {
        !self.label.is_empty() && self.label != self.code.here()
    }
    /// Adds an action that fixes the error.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self.edits.clear();
        self
    }
    /// Puts a better action before the help, which stays as its alternative.
    #[must_use]
    pub fn better(mut self, help: impl Into<String>) -> Self {
        let other = self.help.take().map_or(String::new(), |other| format!("; or {other}"));
        self.help(format!("{}{other}", help.into()))
    }
    /// Adds an edit that implements the help.
    #[must_use]
    pub fn edit(mut self, span: Span, text: impl Into<String>) -> Self {
        self.edits.push(Edit::new(span, text));
        self
    }
    /// Suggests another word as the help, with an edit that replaces the text at the place by this
    /// word.
    #[must_use]
    pub fn did_you_mean(self, word: &str) -> Self {
        let span = self.span;
        self.help(format!("did you mean `{word}`?")).edit(span, word)
    }
    /// Adds another place and its role in the error.
    #[must_use]
    pub fn related(mut self, span: Span, why: impl Into<String>) -> Self {
        self.related.push((span, why.into()));
        self
    }
    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The beginning of a note with the origin of a spec.
const ORIGIN: &str = "comes from ";

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

macro_rules! codes {
    ($($variant:ident = $text:literal $summary:literal),* $(,)?) => {
        /// A stable error code.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $summary] $variant),* }

        impl Code {
            /// Every code with its summary, in order.
            pub const ALL: &'static [(Code, &'static str, &'static str)] =
                &[$((Code::$variant, $text, $summary)),*];

            /// The code as text: `V0204`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text),* }
            }

            /// A summary of one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => $summary),* }
            }
        }
    };
}

codes! {
    Syntax = "P0001" "The text does not follow the grammar.",
    Version = "P0002" "The format version is missing, or this build does not read it.",
    NulByte = "P0003" "The text contains a NUL byte.",
    Number = "P0004" "An integer does not fit in 64 bits.",
    NotUtf8 = "P0005" "The text is not UTF-8.",
    TextTooLong = "X0001" "The text is longer than 2 MiB.",
    TooDeep = "X0002" "Brackets nest too deep.",
    ExprTooLong = "X0003" "An integer expression has too many operators.",
    SharedTooLarge = "X0004" "The block needs more shared memory than the architecture has.",
    TooManyThreads = "X0005" "A block has more threads than the hardware allows.",
    StepBudget = "X0006" "The simulation needs more steps than its budget.",
    TooLarge = "X0007"
        "A tensor is too large to address, or too large for the registers of its threads.",
    PictureTooLarge = "X0008" "A picture would have too many cells to be readable.",
    NoThreads = "X0009" "The operating system cannot start a thread for the work.",
    StrategyTooLarge = "X0010"
        "A strategy has too many statements, or too many combinations of parameter values.",
    UnknownName = "V0201" "A name is used but not defined.",
    Redefined = "V0202" "A name is defined twice in one scope.",
    WrongRank = "V0203" "The number of modes or indices does not fit the tensor.",
    TileDivides = "V0204" "A tile does not divide the extent that it tiles.",
    TypeMismatch = "V0205" "A written type differs from the type of the view.",
    MemoryMismatch = "V0206" "A memory space is not allowed here.",
    ScalarMismatch = "V0207" "The scalar types of the operands do not fit the spec.",
    ShapeMismatch = "V0208" "The shapes of the operands do not fit the spec.",
    NotInjective = "V0209" "A written tensor maps two coordinates to one element.",
    NotCompact = "V0210" "The strides of a register tensor leave gaps or overlap.",
    OutOfBounds = "V0211" "A view reaches outside its buffer.",
    IndexRange = "V0212" "An index can leave the range of its mode.",
    ExecConfig = "V0213"
        "The execution configuration does not name blocks and threads of the enclosing spec.",
    ThreadLayout = "V0214" "A thread tensor is not a set of distinct threads of its block.",
    TvLayout = "V0215" "A thread-value layout does not cover its tensor exactly.",
    OpenLayout = "V0216" "A layout is open where it must be known.",
    Arity = "V0217" "A spec has the wrong number of operands.",
    Attribute = "V0218" "An attribute is unknown, or its value does not fit.",
    LoopStep = "V0219" "The bounds or the step of a loop are not usable.",
    Divergent = "V0220"
        "A barrier or a warp-wide spec is executed under a condition that differs among threads.",
    Placement = "V0221" "A statement is not allowed at its place.",
    Alias = "V0222" "Two allocations overlap in shared memory without `reuses=`.",
    Overflow = "V0223" "Integer arithmetic overflows 64 bits or divides by zero.",
    Alignment = "V0224" "An alignment is not a power of two, or does not cover the swizzle.",
    UnknownAtom = "V0225" "The architecture has no atom of this name.",
    UnknownArch = "V0226" "The atom table does not have this architecture.",
    ReadOnly = "V0227"
        "A body writes a tensor that its spec only reads, or uses one that it does not name.",
    SyncOperands = "V0228" "The operands of a synchronization statement do not fit it.",
    MbarrierAsData = "V0229" "An mbarrier is used as data, or data is used as an mbarrier.",
    TensorMapUse = "V0230"
        "A tensor map is missing, or used by something else than a Move of whole boxes.",
    Peer = "V0231"
        "A view of another block's shared memory names no block of the cluster, or is misplaced.",
    Meaning = "V0232"
        "A `means` block does not define the result of its spec, or is not allowed at its place.",
    EmptyBody = "V0233" "The body of a spec is empty.",
    Unread = "V0234" "A result, or a parameter of a strategy, is declared but not used.",
    NumberKind = "V0235"
        "A number has the wrong kind: an integer, a constant or a finite number is required.",
    Expression = "V0236" "An expression over tensors has no type, or is not allowed at its place.",
    SubSpec = "V0237" "A sub-spec is used in another way than it is defined, or uses itself.",
    Import = "V0238" "A file cannot be imported.",
    DataIndex = "V0239"
        "An index that is read from a tensor may be out of range, or is not allowed at its place.",
    Facts = "V0240" "Facts about symbols contradict each other, or a fact is not about a symbol.",
    Literal = "V0241"
        "A literal of a body is too large or too small for the type of its computation.",
    Swizzled = "V0242" "A swizzle splits elements, or moves elements out of their buffer.",
    Counter = "V0243"
        "A counter is used or stepped where its value is not known, or may become negative.",
    LayoutRefused = "L0101" "A layout operation has no exact result.",
    LayoutOverflow = "L0102" "A size or an index of a layout does not fit in 64 bits.",
    LayoutIncongruent = "L0103" "A shape and its stride or coordinate are nested differently.",
    LayoutRank = "L0104" "A layout does not have the requested mode.",
    LayoutText = "L0105" "A text is not a layout or tuple.",
    LayoutTooDeep = "L0106" "A layout or tuple nests too deep.",
    LayoutTooLarge = "L0107" "A layout or tuple is too large.",
    LayoutNeedsFact = "L0108" "A layout operation depends on an unknown fact about a symbol.",
    LayoutNotInjective = "L0109"
        "A layout maps two coordinates to one index, but must be injective.",
    LayoutExtent = "L0110" "An extent of a layout is not positive.",
    LayoutDivisor = "L0111" "A divisor is not positive.",
    LayoutNegativeStride = "L0112" "A stride is negative, but only others are supported here.",
    LayoutVariable = "L0113" "A symbol has no value, or no value is possible.",
    LayoutSwizzle = "L0114" "The bit fields of a swizzle overlap or do not fit.",
    LayoutTwoAxes = "L0115" "A stride would step along two axes of a coordinate at once.",
    LayoutRecast = "L0116" "Elements of one width are not whole elements of another.",
    LayoutSwizzled = "L0117"
        "An operation on a swizzled layout has no layout or swizzled layout as its result.",
    LayoutArgument = "L0118" "An argument of a layout operation is out of range.",
    LayoutNoInverse = "L0119" "A layout has no inverse.",
    LayoutNotUnified = "L0120" "No compact layout makes all runs of elements consecutive.",
    CalcSyntax = "K0601" "An expression of the layout calculator does not follow its grammar.",
    CalcName = "K0602" "A name in an expression is neither an operation nor a variable.",
    CalcArguments = "K0603" "An operation of the layout calculator does not take these arguments.",
    CalcTooLarge = "K0604" "A calculation with layouts is too large.",
    NoAtom = "D0301" "No atom of the architecture implements the spec.",
    AtomMismatch = "D0302" "The pinned atom does not implement the spec.",
    NoStrategy = "D0303" "No strategy decomposes the spec.",
    PinsConflict = "D0304"
        "The pins contradict each other, or no choice satisfies them for these sizes.",
    NotDecomposed = "D0305" "A spec is neither decomposed nor an atom.",
    Symbolic = "D0306" "A size must be known here.",
    NoSync = "D0307" "The architecture does not have the synchronization, or not with this number.",
    NoCluster = "D0308" "The architecture does not have clusters, or none of this size.",
    Budget = "D0309" "The search reached its budget.",
    Uneven = "D0310" "Threads of a block cannot share a tensor evenly: some repeat work or idle.",
    Unused = "D0311" "A tensor with an open layout is not used.",
    Stages = "D0312"
        "The copies of a loop with `stages=` do not run ahead, or not as far as stated.",
    Role = "D0313"
        "A role waits for an unfilled tile, fills an unread one, or uses a tensor of another role.",
    Unstated = "D0314" "A faster kernel needs a fact about symbols that is not stated.",
    Calls = "D0315"
        "A kernel has both a function call of ptxas and a `wgmma` with a factor in registers.",
    Spills = "D0316"
        "A thread holds more values than it has registers, so that registers spill to memory.",
    Idle = "D0317" "Blocks have fewer threads than a warp.",
    Banks = "D0318" "Accesses to shared memory have bank conflicts that a swizzle would avoid.",
    Unprintable = "C0401" "The program cannot be printed as CUDA C++.",
    NoNvrtc = "C0402" "The NVRTC library was not found.",
    NvrtcFailed = "C0403" "NVRTC rejected the printed program.",
    NvrtcLacksArch = "C0404" "NVRTC does not know the architecture.",
    WrongElement = "S0501" "A body computes something else than its spec means.",
    Race = "S0502"
        "Two threads access one element, at least one writes it, and nothing orders them.",
    Uninitialized = "S0503" "An element is read before it is written.",
    SimOutOfBounds = "S0504" "An access leaves its buffer.",
    Deadlock = "S0505" "Some threads of a barrier do not arrive.",
    NoDenotation = "S0506" "The spec has no body, no atom and no meaning.",
    BadInput = "S0507" "An input array does not fit its tensor.",
    Misaligned = "S0508" "An access does not have the alignment that its atom requires.",
    UnmetWait = "S0509" "A thread waits for work that nothing before the wait completes.",
    BarrierMisuse = "S0510"
        "An mbarrier is used before its initialization, or gets more than its phase expects.",
    Overlap = "S0511" "Threads write different values to one element in one statement.",
    MissingFence = "S0512"
        "A fence is missing between accesses of threads and an asynchronous instruction.",
    OtherSpec = "S0513" "An edited kernel has another spec than the original program.",
    SymbolValue = "S0514" "The program does not allow a value of a symbol.",
    Unordered = "T0801"
        "Two accesses of an element, at least one of them a write, are not ordered.",
    Undecided = "T0802" "The order of accesses cannot be decided.",
    WrongSync = "T0803"
        "A synchronization has a wrong effect: a wait never ends, an arrival is in another phase.",
    Undrawable = "G0601" "The requested picture cannot be drawn.",
    NoDriver = "R0701" "The library of the CUDA driver was not found.",
    NoGpu = "R0702" "The CUDA driver reports no GPU.",
    OldDriver = "R0703" "The CUDA driver is too old.",
    WrongGpu = "R0704" "The GPU cannot run code of the architecture.",
    GpuMemory = "R0705" "The GPU has less free memory than the tensors need.",
    LaunchFailed = "R0706" "The driver or the GPU rejected or aborted a kernel.",
    Unending = "R0707" "A kernel did not end within its time limit.",
    WithoutGpu = "R0708" "This build of carbyne cannot run kernels on a GPU.",
    BadBinary = "R0709" "A file is not a compiled form of the kernel.",
    NoCublas = "R0710" "The cuBLAS library was not found.",
    CublasFailed = "R0711" "cuBLAS does not support a product, or fails.",
    WrongProduct = "R0712" "A kernel computes another result than cuBLAS.",
    BadTuned = "R0713" "A database of tuned kernels cannot be read.",
    StaleTuned = "R0714" "A tuned pin is not valid anymore, and is ignored.",
    Internal = "I0901" "A defect of carbyne.",
}

impl Code {
    /// A general label for the text at the place of an error.
    fn here(self) -> &'static str {
        match self {
            Code::Version => "the version of this text",
            Code::Redefined => "defined again here",
            Code::MemoryMismatch => "in this memory",
            Code::ScalarMismatch => "with operands of these types",
            Code::ShapeMismatch => "with these extents",
            Code::ExecConfig => "executed by these threads",
            Code::Arity => "with these operands",
            Code::SyncOperands => "this operand",
            Code::MbarrierAsData => "this tensor",
            Code::TensorMapUse => "this use of a tensor map",
            Code::Peer => "this view of another block",
            Code::Divergent => "reached by these threads",
            Code::Placement => "not allowed at this place",
            Code::ReadOnly => "used by this statement",
            Code::Meaning => "in the meaning of this spec",
            Code::Expression | Code::Overflow => "in this expression",
            Code::LayoutRefused => "this layout",
            Code::NoAtom => "no instruction implements this",
            Code::NoStrategy => "left to a strategy",
            Code::NotDecomposed => "left without a body",
            Code::PinsConflict => "pinned here",
            Code::NoSync | Code::NoCluster => "not available on this architecture",
            Code::Budget => "the search ended at this spec",
            Code::Undecided => "not decided here",
            Code::Unprintable => "cannot be printed as CUDA C++",
            _ => "this statement",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Errors collected up to [`crate::limits::MAX_ERRORS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one, unless the list is full.
    pub fn push(&mut self, d: Diagnostic) {
        if !self.is_full() {
            self.list.push(d);
        }
    }
    /// Whether the list is full.
    pub fn is_full(&self) -> bool {
        self.list.len() >= crate::limits::MAX_ERRORS
    }
    /// The number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Adds to all diagnostics from number `first` on a note with the origin of their spec.
    pub(crate) fn come_from(&mut self, first: usize, loc: Option<&str>) {
        if let Some(loc) = loc {
            self.list.iter_mut().skip(first).for_each(|d| d.comes_from(loc));
        }
    }
    /// The diagnostics from number `first` on.
    pub(crate) fn iter_mut_from(&mut self, first: usize) -> impl Iterator<Item = &mut Diagnostic> {
        self.list.iter_mut().skip(first)
    }
    /// Removes errors with this code if there are errors with other codes: they may be
    /// consequences.
    pub(crate) fn drop_consequences(&mut self, code: Code) {
        if self.list.iter().any(|d| d.code != code) {
            self.list.retain(|d| d.code != code);
        }
    }
    /// The diagnostics in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
    /// The diagnostics in the order in which they were found.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

/// Prints one diagnostic a line.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl From<Box<Diagnostic>> for Diagnostics {
    fn from(one: Box<Diagnostic>) -> Self {
        Diagnostics { list: vec![*one] }
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(all: I) -> Self {
        let mut out = Diagnostics::default();
        all.into_iter().for_each(|d| out.push(d));
        out
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// The distance between two words in inserted, deleted, replaced or swapped letters: first without
/// regard to case, then with regard to case.
#[cfg(feature = "text")]
pub(crate) fn apart(a: &str, b: &str) -> (usize, usize) {
    let [low_a, low_b] = [a, b].map(str::to_ascii_lowercase);
    (strsim::osa_distance(&low_a, &low_b), strsim::osa_distance(a, b))
}

/// A number with its noun: `1 mode`, `2 modes`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The known word that differs from `word` in at most two letters and in less than half of its
/// letters: probably the intended word.
#[cfg(feature = "text")]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer words are not compared, as the time grows with the product of the lengths.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let known = known.filter(|k| k.len() <= LONGEST);
    let near = known.map(|k| (apart(word, k), k)).min_by_key(|(d, _)| *d)?;
    let steps = near.0.0;
    (steps <= 2 && 2 * steps < word.len()).then_some(near.1)
}
