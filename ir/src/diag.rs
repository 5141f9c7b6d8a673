//! The one shape of an error or a warning: a code, a headline, a span, what was found and wanted, a
//! way out.
//!
//! Codes are a table ([`Code::ALL`]): family letter and number, a one-sentence summary. `P` parse,
//! `V` verify, `L` layout algebra, `K` layout calculator, `D` decompose, `C` code generation, `S`
//! simulate, `G` draw, `R` run, `X` limits.

use crate::span::Span;
use std::fmt;

/// Whether a diagnostic stops what was asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// There is no result.
    Error,
    /// There is a result, which may not be what is wanted.
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
    /// Puts a text in the place of a span.
    pub fn new(span: Span, text: impl Into<String>) -> Self {
        Edit { span, text: text.into() }
    }

    /// The first byte that goes.
    pub fn start(&self) -> usize {
        self.span.start as usize
    }

    /// One past the last byte that goes.
    pub fn end(&self) -> usize {
        self.span.end as usize
    }

    /// A text in which all edits are made; none where two overlap, or one is not of this text.
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
    /// Which error.
    pub code: Code,
    /// Whether it is one.
    pub severity: Severity,
    /// Headline: lower case, names in backticks, no full stop.
    pub message: String,
    /// The place.
    pub span: Span,
    /// What stands at the place.
    pub label: String,
    /// Other places, each with why it matters.
    pub related: Vec<(Span, String)>,
    /// An action that would mend it.
    pub help: Option<String>,
    /// The help as edits, all to be made at once. Empty if the help is no edit.
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
            label: String::new(),
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
    /// Notes where the spec that it is about comes from (`loc=`), unless that is said.
    pub fn comes_from(&mut self, loc: &str) {
        const SAID: &str = "comes from ";
        if !self.notes.iter().any(|note| note.starts_with(SAID)) {
            self.notes.push(format!("{SAID}{loc}"));
        }
    }
    /// Says what stands at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Adds an action that would mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self.edits.clear();
        self
    }
    /// Adds an edit that the help describes.
    #[must_use]
    pub fn edit(mut self, span: Span, text: impl Into<String>) -> Self {
        self.edits.push(Edit::new(span, text));
        self
    }
    /// Asks whether another word was meant, which then replaces what stands at the place.
    #[must_use]
    pub fn did_you_mean(self, word: &str) -> Self {
        let span = self.span;
        self.help(format!("did you mean `{word}`?")).edit(span, word)
    }
    /// Adds another place and why it matters.
    #[must_use]
    pub fn related(mut self, span: Span, why: impl Into<String>) -> Self {
        self.related.push((span, why.into()));
        self
    }
    /// Adds a line.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

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

            /// `V0204`
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text),* }
            }

            /// One sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => $summary),* }
            }
        }
    };
}

codes! {
    Syntax = "P0001" "The text does not follow the grammar.",
    Version = "P0002" "The format version is missing or not one that this build reads.",
    NulByte = "P0003" "The text holds a NUL byte.",
    Number = "P0004" "An integer does not fit 64 bits.",
    NotUtf8 = "P0005" "The text is not UTF-8.",
    TextTooLong = "X0001" "The text is longer than 2 MiB.",
    TooDeep = "X0002" "Brackets nest too deep.",
    ExprTooLong = "X0003" "An integer expression has too many operators.",
    SharedTooLarge = "X0004" "The block needs more shared memory than the architecture has.",
    TooManyThreads = "X0005" "A block has more threads than the hardware allows.",
    StepBudget = "X0006" "The simulation would take more steps than its budget.",
    TooLarge = "X0007" "A tensor is too large to address, or for the registers of the threads that hold it.",
    PictureTooLarge = "X0008" "A picture would have more cells than anybody can read.",
    NoThreads = "X0009" "The machine starts no thread to work on.",
    StrategyTooLarge = "X0010" "A strategy has more statements, or values of its parameters have more combinations, than are tried.",
    UnknownName = "V0201" "A name is used that nothing defines.",
    Redefined = "V0202" "A name is defined twice in one scope.",
    WrongRank = "V0203" "The number of modes or indices does not fit the tensor.",
    TileDivides = "V0204" "A tile does not divide the extent that it tiles.",
    TypeMismatch = "V0205" "A written type disagrees with the one that follows from the view.",
    MemoryMismatch = "V0206" "A memory space is not allowed here.",
    ScalarMismatch = "V0207" "Scalar types do not fit the spec.",
    ShapeMismatch = "V0208" "Shapes of the operands do not fit the spec.",
    NotInjective = "V0209" "A written tensor maps two coordinates to one element.",
    NotCompact = "V0210" "A register tensor's strides leave gaps or overlap.",
    OutOfBounds = "V0211" "A view reaches outside its buffer.",
    IndexRange = "V0212" "An index can leave the range of its mode.",
    ExecConfig = "V0213" "The execution configuration is not one of blocks and threads of the enclosing spec.",
    ThreadLayout = "V0214" "A thread tensor is not a set of distinct threads of its block.",
    TvLayout = "V0215" "A thread-value layout does not cover its tensor exactly.",
    OpenLayout = "V0216" "An open layout stands where it must be known.",
    Arity = "V0217" "A spec has the wrong number of operands.",
    Attribute = "V0218" "An attribute is unknown or its value does not fit.",
    LoopStep = "V0219" "A loop's bounds or step are not usable.",
    Divergent = "V0220" "A barrier or warp-wide spec stands where threads have diverged.",
    Placement = "V0221" "A statement stands where it is not allowed.",
    Alias = "V0222" "Two allocations overlap in shared memory without saying so.",
    Overflow = "V0223" "Integer arithmetic leaves 64 bits or divides by zero.",
    Alignment = "V0224" "An alignment is not a power of two or does not cover the swizzle.",
    UnknownAtom = "V0225" "No atom of the architecture has this name.",
    UnknownArch = "V0226" "The architecture is not one that the atom table knows.",
    ReadOnly = "V0227" "A tensor is written that the enclosing spec only reads, or read that it does not name.",
    SyncOperands = "V0228" "The operands of a synchronization statement do not fit it.",
    MbarrierAsData = "V0229" "An mbarrier is used as data, or data as an mbarrier.",
    TensorMapUse = "V0230" "A tensor has no tensor map, or its map is used otherwise than box by box by a Move.",
    Peer = "V0231" "A view of another block's shared memory does not name a block of the cluster, or stands where none may.",
    Meaning = "V0232" "A `means` block does not say what its spec computes, or stands where none may.",
    EmptyBody = "V0233" "The body of a spec is empty.",
    Unread = "V0234" "A result, or a parameter of a strategy, is declared that nothing reads.",
    NumberKind = "V0235" "A number stands where one of another kind is due: an integer, a constant, a finite one.",
    Expression = "V0236" "An expression over tensors has no type, or stands where none may.",
    SubSpec = "V0237" "A sub-spec is not used as it is defined, or uses itself.",
    Import = "V0238" "A file cannot be imported.",
    DataIndex = "V0239" "An index that is read from a tensor is not known to be in range, or stands where none may.",
    Facts = "V0240" "What is said of symbols contradicts itself, or is said of what is no symbol.",
    Literal = "V0241" "A literal of a body lies beyond the range of the type that it is computed in, or is too small for it.",
    Swizzled = "V0242" "A swizzle takes elements apart, or moves them out of their buffer.",
    LayoutRefused = "L0101" "A layout operation has no exact result.",
    LayoutOverflow = "L0102" "A size or an index of a layout does not fit 64 bits.",
    LayoutIncongruent = "L0103" "A shape and its stride or coordinate are nested differently.",
    LayoutRank = "L0104" "A layout does not have the mode that is asked for.",
    LayoutText = "L0105" "A text is no layout or tuple.",
    LayoutTooDeep = "L0106" "A layout or tuple nests too deep.",
    LayoutTooLarge = "L0107" "A layout or tuple is too large.",
    LayoutNeedsFact = "L0108" "A layout operation depends on what is not known of a symbol.",
    LayoutNotInjective = "L0109" "A layout sends two coordinates to one index where it must not.",
    LayoutExtent = "L0110" "An extent of a layout is not positive.",
    LayoutDivisor = "L0111" "A division by what is not positive.",
    LayoutNegativeStride = "L0112" "A stride is negative where only others have a meaning.",
    LayoutVariable = "L0113" "A symbol has no value, or none is possible.",
    LayoutSwizzle = "L0114" "A swizzle's bit fields overlap or do not fit.",
    LayoutTwoAxes = "L0115" "A stride would step along two axes of a coordinate at once.",
    LayoutRecast = "L0116" "Elements of one width are not whole elements of another.",
    LayoutSwizzled = "L0117" "An operation on a swizzled layout has no result that is one.",
    LayoutArgument = "L0118" "A number is outside of what a layout operation takes.",
    LayoutNoInverse = "L0119" "A layout has no inverse.",
    LayoutNotUnified = "L0120" "No compact layout makes all runs of elements consecutive.",
    CalcSyntax = "K0601" "An expression of the layout calculator does not follow its grammar.",
    CalcName = "K0602" "A name stands in an expression that is neither an operation nor bound.",
    CalcArguments = "K0603" "An operation of the layout calculator does not take these arguments.",
    CalcTooLarge = "K0604" "A calculation with layouts is too large.",
    NoAtom = "D0301" "No atom of the architecture implements the spec.",
    AtomMismatch = "D0302" "The pinned atom does not implement the spec.",
    NoStrategy = "D0303" "No strategy decomposes the spec.",
    PinsConflict = "D0304" "The pins cannot hold together, or the sizes leave nothing that would be as asked.",
    NotDecomposed = "D0305" "A spec is neither decomposed nor an atom.",
    Symbolic = "D0306" "A size must be known here.",
    NoSync = "D0307" "The architecture has no such synchronization, or not with such a number.",
    NoCluster = "D0308" "The architecture has no such cluster of blocks.",
    Budget = "D0309" "The search ended at its budget.",
    Uneven = "D0310" "Threads of a block cannot share a tensor evenly: they repeat each other's work, or idle.",
    Unused = "D0311" "Nobody uses a tensor whose layout is open.",
    Stages = "D0312" "Copies of a loop with `stages=` do not run ahead, or not as far as it says.",
    Role = "D0313" "A role of a loop waits for what nobody fills, fills what nobody reads, or uses what another holds.",
    Unstated = "D0314" "A faster kernel is not written, since a fact about symbols is not stated.",
    Calls = "D0315" "What ptxas makes a call of stands in a kernel with a `wgmma` that has a factor in registers.",
    Spills = "D0316" "A thread holds more values than it has registers, and what is beyond goes to memory.",
    Idle = "D0317" "Blocks have fewer threads than a warp.",
    Banks = "D0318" "Accesses to shared memory have bank conflicts that a swizzle would end.",
    Unprintable = "C0401" "The program cannot be printed as CUDA C++.",
    NoNvrtc = "C0402" "NVRTC is not to be found.",
    NvrtcFailed = "C0403" "NVRTC refused the printed program.",
    NvrtcLacksArch = "C0404" "NVRTC does not know the architecture.",
    WrongElement = "S0501" "A body does not compute what its spec means.",
    Race = "S0502" "Two threads touch one element, one of them writing, and nothing orders them.",
    Uninitialized = "S0503" "An element is read that nothing has written.",
    SimOutOfBounds = "S0504" "An access leaves its buffer.",
    Deadlock = "S0505" "Not all threads of a barrier arrive.",
    NoDenotation = "S0506" "The spec has neither a body, nor an atom, nor a meaning of its own.",
    BadInput = "S0507" "An input array does not fit its tensor.",
    Misaligned = "S0508" "An access is not aligned as its atom demands.",
    UnmetWait = "S0509" "A thread waits for what nothing before its wait completes.",
    BarrierMisuse = "S0510" "A barrier object is used before its init, or gets what its phase does not take.",
    Overlap = "S0511" "Threads write different values to one element in one statement.",
    MissingFence = "S0512" "A fence is missing between threads' accesses and an asynchronous instruction.",
    OtherSpec = "S0513" "An edited kernel is not the spec of the program that it was edited from.",
    SymbolValue = "S0514" "A value of a symbol is not one that the program takes.",
    Unordered = "T0801" "Two accesses of an element meet, one of them writing, and no synchronization orders them.",
    Undecided = "T0802" "It cannot be said whether accesses are ordered.",
    WrongSync = "T0803" "A synchronization does not do what it is to do: a wait that nobody ends, an arrival in another phase.",
    Undrawable = "G0601" "What is asked for cannot be drawn as asked.",
    NoDriver = "R0701" "The CUDA driver's library is not to be found.",
    NoGpu = "R0702" "The driver offers no GPU.",
    OldDriver = "R0703" "The CUDA driver is too old.",
    WrongGpu = "R0704" "The GPU does not run code of the architecture.",
    GpuMemory = "R0705" "The GPU has less free memory than the tensors need.",
    LaunchFailed = "R0706" "The driver or the GPU refused a kernel or ended it.",
    Unending = "R0707" "A kernel does not end in the time that it is given.",
    WithoutGpu = "R0708" "This carbyne was built without the part that runs kernels on a GPU.",
    BadBinary = "R0709" "A file is no compiled form of the kernel.",
    NoCublas = "R0710" "NVIDIA's library cuBLAS is not to be found.",
    CublasFailed = "R0711" "cuBLAS does not have a product, or fails.",
    WrongProduct = "R0712" "A kernel computes something else than cuBLAS.",
    BadTuned = "R0713" "A database of tuned kernels cannot be read.",
    StaleTuned = "R0714" "A pin that was tuned can no longer be, and is not taken.",
    Internal = "I0901" "A defect of carbyne itself.",
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
    /// Whether no more are kept.
    pub fn is_full(&self) -> bool {
        self.list.len() >= crate::limits::MAX_ERRORS
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Notes of those from the one of that number on where the spec that they are about comes from.
    pub(crate) fn come_from(&mut self, first: usize, loc: Option<&str>) {
        if let Some(loc) = loc {
            self.list.iter_mut().skip(first).for_each(|d| d.comes_from(loc));
        }
    }
    /// Those from the one of that number on.
    pub(crate) fn iter_mut_from(&mut self, first: usize) -> impl Iterator<Item = &mut Diagnostic> {
        self.list.iter_mut().skip(first)
    }
    /// Leaves out errors of that code where there are others, of which they may be consequences.
    pub(crate) fn drop_consequences(&mut self, code: Code) {
        if self.list.iter().any(|d| d.code != code) {
            self.list.retain(|d| d.code != code);
        }
    }
    /// In the order found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
    /// In the order found.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

/// One a line.
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

/// How far one word is from another, in letters that are inserted, deleted, replaced or swapped
/// with the next: whatever their case, then by case.
#[cfg(feature = "text")]
pub(crate) fn apart(a: &str, b: &str) -> (usize, usize) {
    let [low_a, low_b] = [a, b].map(str::to_ascii_lowercase);
    (strsim::osa_distance(&low_a, &low_b), strsim::osa_distance(a, b))
}

/// The known word that differs from `word` in at most two letters, and in less than half: what may
/// have been meant.
#[cfg(feature = "text")]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer words are compared with nothing, as comparing takes time by the product of the
    /// lengths.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let known = known.filter(|k| k.len() <= LONGEST);
    let near = known.map(|k| (apart(word, k), k)).min_by_key(|(d, _)| *d)?;
    let steps = near.0.0;
    (steps <= 2 && 2 * steps < word.len()).then_some(near.1)
}
