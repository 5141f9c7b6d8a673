/* Tests of errors, wrong calls, cancellation and threads, and that memory does not grow.
   Arguments: `border CYCLES SEARCHED PROVED`. SEARCHED is a program with a long search, PROVED one
   with a long proof of its order. */
#include <carbyne.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char SCALE[] = "carbyne 2\n"
                            "sym N where N >= 1\n"
                            "%X:[N].f32.GL\n"
                            "%Y:[N].f32.GL\n"
                            "BinaryPointwise.add @scale (%X, %X) -> (%Y)\n";

static const char UNFIT[] = "carbyne 2\n"
                            "%A:[64,32].f32.GL\n"
                            "%B:[16,64].f32.GL\n"
                            "%C:[64,64].f32.GL\n"
                            "MatMul.set @gemm (%A, %B) -> (%C) acc=f32\n";

static CarbyneProgram *program_of(const char *text) {
    CarbyneProgram *program;
    CarbyneDiagnostics *said;
    CarbyneStatus status = carbyne_program_new(text, strlen(text), NULL, &program, &said);
    if (said != NULL)
        fprintf(stderr, "%s\n", carbyne_diagnostics_rendered(said));
    CHECK(status == CARBYNE_STATUS_OK && said == NULL && program != NULL);
    return program;
}

static CarbyneDecomposed *decomposed_of(const CarbyneProgram *program) {
    CarbyneDecomposed *decomposed;
    CarbyneDiagnostics *said;
    CarbyneStatus status = carbyne_decompose(program, "sm_80", NULL, NULL, &decomposed, &said);
    CHECK(status == CARBYNE_STATUS_OK);
    carbyne_diagnostics_free(said);
    return decomposed;
}

static CarbyneTensor vector(float *data, const int64_t *extent) {
    CarbyneTensor tensor = {.data = data, .ndim = 1, .shape = extent};
    tensor.device.device_type = 1;
    tensor.dtype.code = 2;
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 1;
    return tensor;
}

/* Checks that a wrong call has one error without a code. The diagnostics are read after the call,
   in whatever order C evaluates the arguments. */
static void expect_misuse(CarbyneStatus status, CarbyneDiagnostics **place, const char *about) {
    CarbyneDiagnostics *said = *place;
    CHECK(status == CARBYNE_STATUS_MISUSE);
    CHECK(carbyne_diagnostics_count(said) == 1);
    CHECK(strcmp(carbyne_diagnostics_code(said, 0), "") == 0);
    CHECK(strstr(carbyne_diagnostics_message(said, 0), about) != NULL);
    CHECK(strstr(carbyne_diagnostics_json(said), about) != NULL);
    carbyne_diagnostics_free(said);
}

static void expect_code(CarbyneStatus status, CarbyneDiagnostics **place, const char *code) {
    CarbyneDiagnostics *said = *place;
    CHECK(status == CARBYNE_STATUS_REFUSED);
    if (strcmp(carbyne_diagnostics_code(said, 0), code) != 0)
        fprintf(stderr, "%s\n", carbyne_diagnostics_rendered(said));
    CHECK(strcmp(carbyne_diagnostics_code(said, 0), code) == 0);
    carbyne_diagnostics_free(said);
}

static void errors_have_code_text_and_place(void) {
    CarbyneProgram *program = (CarbyneProgram *)1;
    CarbyneDiagnostics *said;
    CarbyneStatus status = carbyne_program_new(UNFIT, strlen(UNFIT), NULL, &program, &said);
    CHECK(status == CARBYNE_STATUS_REFUSED && program == NULL);
    CHECK(carbyne_diagnostics_count(said) == 1);
    CHECK(strcmp(carbyne_diagnostics_code(said, 0), "V0208") == 0);
    CHECK(carbyne_diagnostics_severity(said, 0) == CARBYNE_SEVERITY_ERROR);
    CHECK(strstr(carbyne_diagnostics_message(said, 0), "shapes") != NULL);
    CHECK(strstr(carbyne_diagnostics_help(said, 0), "[16,64]") != NULL);
    CHECK(carbyne_diagnostics_span_count(said, 0) >= 1);
    CarbyneSpan span = carbyne_diagnostics_span(said, 0, 0);
    const char *spec = strstr(UNFIT, "MatMul");
    CHECK(span.line == 5 && span.column == 1 && span.end_line == 5);
    CHECK(UNFIT + span.byte_start == spec && span.byte_end == strlen(UNFIT) - 1);
    CHECK(strstr(span.label, "[64,32]") != NULL);
    CHECK(strstr(carbyne_diagnostics_rendered(said), "MatMul.set @gemm") != NULL);
    CHECK(strstr(carbyne_diagnostics_json(said), "\"code\":\"V0208\"") != NULL);
    /* Diagnostics and places that do not exist. */
    CHECK(carbyne_diagnostics_code(said, 7) == NULL && carbyne_diagnostics_help(said, 7) == NULL);
    CHECK(carbyne_diagnostics_message(said, (size_t)-1) == NULL);
    CHECK(carbyne_diagnostics_span_count(said, 7) == 0);
    span = carbyne_diagnostics_span(said, 0, 99);
    CHECK(span.line == 0 && span.label == NULL);
    carbyne_diagnostics_free(said);

    /* Without a pointer for diagnostics only the status is returned. */
    status = carbyne_program_new(UNFIT, strlen(UNFIT), NULL, &program, NULL);
    CHECK(status == CARBYNE_STATUS_REFUSED && program == NULL);
}

static void texts_of_all_kinds(const char *path) {
    CarbyneProgram *program;
    CarbyneDiagnostics *said;
    CarbyneStatus status = carbyne_program_new("carbyne 2\n\xff", 11, path, &program, &said);
    expect_code(status, &said, "P0005");
    status = carbyne_program_new("carbyne 2\n\0", 11, path, &program, &said);
    expect_code(status, &said, "P0003");
    /* Nothing is read beyond the longest text. */
    status = carbyne_program_new(NULL, 0, path, &program, &said);
    expect_code(status, &said, "P0002");
    size_t size = (size_t)2 << 20;
    char *huge = malloc(size + 1);
    CHECK(huge != NULL);
    memset(huge, ' ', size + 1);
    memcpy(huge, SCALE, strlen(SCALE));
    status = carbyne_program_new(huge, size, path, &program, &said);
    CHECK(status == CARBYNE_STATUS_OK && said == NULL);
    carbyne_program_free(program);
    status = carbyne_program_new(huge, size + 1, path, &program, &said);
    expect_code(status, &said, "X0001");
    memset(huge, '(', size);
    status = carbyne_program_new(huge, size, path, &program, &said);
    CHECK(status == CARBYNE_STATUS_REFUSED);
    carbyne_diagnostics_free(said);
    free(huge);
}

static void wrong_calls(void) {
    CarbyneDiagnostics *said;
    CarbyneProgram *program = program_of(SCALE), *other;
    CarbyneDecomposed *decomposed;
    CarbyneBytes *bytes;
    CarbyneFunction *function;

    expect_misuse(carbyne_program_new(NULL, 5, NULL, &other, &said), &said, "`text` is null");
    expect_misuse(carbyne_program_new(SCALE, 5, NULL, NULL, &said), &said, "`program` is null");
    expect_misuse(carbyne_program_new(SCALE, (size_t)-1, NULL, &other, &said), &said, "`text`");
    expect_misuse(carbyne_program_new(SCALE, 5, "\xff", &other, &said), &said, "`path`");
    expect_misuse(carbyne_program_format(NULL, &bytes, &said), &said, "`program` is null");
    expect_misuse(carbyne_program_text(program, NULL, &said), &said, "`text` is null");
    expect_misuse(carbyne_program_check(NULL, NULL, NULL, NULL, &said), &said, "`program`");
    expect_misuse(carbyne_program_check(program, "\xff", NULL, NULL, &said), &said, "`arch`");
    expect_misuse(carbyne_program_check(program, "sm_1", NULL, NULL, &said), &said, "sm_1");
    CHECK(carbyne_program_check(program, NULL, NULL, NULL, NULL) == CARBYNE_STATUS_OK);

    CarbyneDecomposeOptions options = {.size = 3};
    expect_misuse(carbyne_decompose(NULL, "sm_80", NULL, NULL, &decomposed, &said), &said, "null");
    expect_misuse(carbyne_decompose(program, NULL, NULL, NULL, &decomposed, &said), &said, "`arch`");
    expect_misuse(carbyne_decompose(program, "", NULL, NULL, &decomposed, &said), &said, "`arch`");
    expect_misuse(carbyne_decompose(program, "sm_80", NULL, NULL, NULL, &said), &said, "null");
    CarbyneStatus status = carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said);
    expect_misuse(status, &said, "is 3");
    options = (CarbyneDecomposeOptions){.size = sizeof options, .forbid_count = 1};
    status = carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said);
    expect_misuse(status, &said, "`forbid` is null");
    options.forbid = (const char *const[]){"no.such.atom"};
    status = carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said);
    expect_misuse(status, &said, "no.such.atom");
    options.forbid_count = (size_t)-1;
    status = carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said);
    expect_misuse(status, &said, "`forbid`");
    CarbyneStrategy strategy = {.name = "own", .text = "(", .text_size = 1};
    options = (CarbyneDecomposeOptions){
        .size = sizeof options, .strategies = &strategy, .strategy_count = 1};
    status = carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said);
    CHECK(status == CARBYNE_STATUS_REFUSED && decomposed == NULL);
    carbyne_diagnostics_free(said);

    /* A structure of a newer version may have more fields, if they are 0. */
    struct {
        CarbyneDecomposeOptions known;
        uint64_t added;
    } newer = {.known.size = sizeof newer};
    status = carbyne_decompose(program, "sm_80", &newer.known, NULL, &decomposed, &said);
    CHECK(status == CARBYNE_STATUS_OK);
    carbyne_diagnostics_free(said);
    carbyne_decomposed_free(decomposed);
    newer.added = 1;
    status = carbyne_decompose(program, "sm_80", &newer.known, NULL, &decomposed, &said);
    expect_misuse(status, &said, "does not know");

    decomposed = decomposed_of(program);
    expect_misuse(carbyne_decomposed_compile(decomposed, 7, &bytes, &said), &said, "`form` is 7");
    expect_misuse(carbyne_decomposed_cuda(decomposed, "\xff", &bytes, &said), &said, "`name`");
    expect_misuse(carbyne_decomposed_abi(NULL, &bytes, &said), &said, "`decomposed` is null");
    status = carbyne_function_new(decomposed, -2, NULL, 0, &function, &said);
    expect_misuse(status, &said, "`device` is -2");
    CHECK(function == NULL);

    status = carbyne_function_new(decomposed, CARBYNE_SIMULATOR, NULL, 0, &function, &said);
    CHECK(status == CARBYNE_STATUS_OK);
    CHECK(carbyne_function_parameter_count(function) == 2);
    CHECK(strcmp(carbyne_function_parameter(function, 0), "X") == 0);
    CHECK(carbyne_function_parameter(function, 2) == NULL);
    float data[16] = {0};
    int64_t extent = 8, negative = -1, more = 5;
    CarbyneTensor x = vector(data, &extent), y = vector(data + 8, &extent);
    const CarbyneTensor *arguments[] = {&x, &y, NULL};
#define CALL(n) carbyne_function_call(function, arguments, n, NULL, 0, NULL, NULL, &said)
    expect_misuse(CALL(1), &said, "1 tensors");
    expect_misuse(CALL(3), &said, "3 tensors");
    arguments[1] = NULL;
    expect_misuse(CALL(2), &said, "`Y` is null");
    arguments[1] = &y;
    y.ndim = -1;
    expect_code(CALL(2), &said, "S0507");
    y.ndim = 1000;
    expect_code(CALL(2), &said, "S0507");
    y.ndim = 2;
    y.shape = NULL;
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 4, &extent); /* overlaps %X */
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 8, &negative);
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 8, &more);
    expect_code(CALL(2), &said, "S0507");
    y = vector(NULL, &extent);
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 8, &extent);
    y.dtype.bits = 16;
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 8, &extent);
    y.device.device_type = 2;
    expect_code(CALL(2), &said, "S0507");
    y = vector(data + 8, &extent);
    CarbyneSymbol symbol = {.name = "Q", .value = 3};
    status = carbyne_function_call(function, arguments, 2, &symbol, 1, NULL, NULL, &said);
    expect_misuse(status, &said, "no symbol `Q`");
    symbol.name = "N";
    status = carbyne_function_call(function, arguments, 2, &symbol, 1, NULL, NULL, &said);
    expect_code(status, &said, "S0507");
    CHECK(CALL(2) == CARBYNE_STATUS_OK && said == NULL);

    /* Functions accept null. */
    CHECK(carbyne_bytes_data(NULL) == NULL && carbyne_bytes_size(NULL) == 0);
    CHECK(carbyne_diagnostics_count(NULL) == 0 && carbyne_diagnostics_json(NULL) == NULL);
    CHECK(carbyne_function_parameter_count(NULL) == 0);
    carbyne_bytes_free(NULL);
    carbyne_diagnostics_free(NULL);
    carbyne_function_free(NULL);
    carbyne_token_cancel(NULL);
    carbyne_token_free(NULL);

    /* Objects that were created from a program remain valid when the program is freed. */
    carbyne_program_free(program);
    carbyne_decomposed_free(decomposed);
    data[3] = 21;
    CHECK(CALL(2) == CARBYNE_STATUS_OK && data[8 + 3] == 42);
    carbyne_function_free(function);
}

static void simulation_by_names(void) {
    CarbyneProgram *program = program_of(SCALE), *whole;
    CarbyneDecomposed *decomposed = decomposed_of(program);
    CarbyneDiagnostics *said;
    CarbyneBytes *report, *pairs, *text, *document;
    CHECK(carbyne_decomposed_program(decomposed, &whole, NULL) == CARBYNE_STATUS_OK);
    CHECK(carbyne_program_check(whole, NULL, NULL, &pairs, NULL) == CARBYNE_STATUS_OK);
    CHECK(carbyne_bytes_data(pairs)[0] == '[');
    CHECK(carbyne_program_format(whole, &text, NULL) == CARBYNE_STATUS_OK);
    CHECK(strstr(carbyne_bytes_data(text), "atom=") != NULL);
    CHECK(carbyne_bytes_size(text) == strlen(carbyne_bytes_data(text)));
    CHECK(carbyne_decomposed_document(decomposed, NULL, &document, NULL) == CARBYNE_STATUS_OK);
    CHECK(strstr(carbyne_bytes_data(document), "certificates") != NULL);

    float x[] = {1, -1, 2, -1, 3, -1}, y[] = {7, 7, 7};
    int64_t extent = 3, stride = 2;
    CarbyneTensor tx = vector(x, &extent), ty = vector(y, &extent);
    tx.strides = &stride;
    CarbyneNamedTensor tensors[] = {{"X", &tx}, {"Y", &ty}};
    CarbyneSymbol symbol = {"N", 3};
    CarbyneSimulateOptions options = {
        .size = sizeof options, .symbols = &symbol, .symbol_count = 1};
#define RUN(n) carbyne_program_simulate(whole, NULL, tensors, n, &options, NULL, &report, &said)
    CHECK(RUN(2) == CARBYNE_STATUS_OK && said == NULL);
    CHECK(y[0] == 2 && y[1] == 4 && y[2] == 6);
    CHECK(strstr(carbyne_bytes_data(report), "\"scale\"") != NULL);
    carbyne_bytes_free(report);
    tensors[0].name = "Z";
    expect_code(RUN(2), &said, "S0507");
    tensors[0].name = "Y";
    expect_code(RUN(2), &said, "S0507");
    tensors[0].name = NULL;
    expect_misuse(RUN(2), &said, "null");
    tensors[0].name = "X";
    symbol.value = -5;
    CHECK(RUN(2) == CARBYNE_STATUS_REFUSED && report == NULL);
    carbyne_diagnostics_free(said);
    symbol.name = "M";
    expect_misuse(RUN(2), &said, "no symbol `M`");

    carbyne_bytes_free(pairs);
    carbyne_bytes_free(text);
    carbyne_bytes_free(document);
    carbyne_program_free(whole);
    carbyne_decomposed_free(decomposed);
    carbyne_program_free(program);
}

static const char TWICE[] = "carbyne 2\n"
                            "%X:[4].f32.GL\n"
                            "%Y:[4].f32.GL\n"
                            "%Z:[4].f32.GL\n"
                            "BinaryPointwise.add @a (%X, %X) -> (%Y)\n"
                            "BinaryPointwise.add @b (%X, %X) -> (%Z)\n";

/* A refused simulation writes nothing. Results must not share memory. */
static void results_are_written_together(void) {
    CarbyneProgram *program = program_of(TWICE);
    CarbyneDiagnostics *said;
    float x[] = {1, 2, 3, 4}, y[] = {7, 7, 7, 7, 7};
    int64_t four = 4, three = 3, none = 0;
    CarbyneTensor tx = vector(x, &four), ty = vector(y, &four), tz = vector(y, &three);
    CarbyneNamedTensor tensors[] = {{"X", &tx}, {"Y", &ty}, {"Z", &tz}};
#undef RUN
#define RUN() carbyne_program_simulate(program, NULL, tensors, 3, NULL, NULL, NULL, &said)
    float z[] = {7, 7, 7, 7};
    tz.data = z;
    expect_code(RUN(), &said, "S0507");
    tz.shape = &four;
    tz.data = x;
    expect_code(RUN(), &said, "S0507");
    tz.data = y + 1;
    expect_code(RUN(), &said, "S0507");
    tz.data = z;
    tz.strides = &none;
    expect_code(RUN(), &said, "S0507");
    for (int i = 0; i < 4; i++)
        CHECK(x[i] == i + 1 && y[i] == 7 && z[i] == 7);
    tz.strides = NULL;
    CHECK(RUN() == CARBYNE_STATUS_OK && said == NULL);
    for (int i = 0; i < 4; i++)
        CHECK(y[i] == 2 * x[i] && z[i] == 2 * x[i]);
    CarbyneSymbol symbols[] = {{"N", 4}, {"N", 5}};
    CarbyneSimulateOptions options = {
        .size = sizeof options, .symbols = symbols, .symbol_count = 2};
    CarbyneStatus status =
        carbyne_program_simulate(program, NULL, tensors, 3, &options, NULL, NULL, &said);
    expect_misuse(status, &said, "twice");
    carbyne_program_free(program);
    CarbyneBytes *pairs = (CarbyneBytes *)&four;
    CHECK(carbyne_program_check(NULL, NULL, NULL, &pairs, NULL) == CARBYNE_STATUS_MISUSE);
    CHECK(pairs == NULL);
}

static void *cancel_soon(void *token) {
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    carbyne_token_cancel(token);
    return NULL;
}

static CarbyneProgram *program_at(const char *path) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return program_of(text);
}

static void proofs_are_cancelled(const char *path) {
    CarbyneProgram *program = program_at(path);
    CarbyneToken *token = carbyne_token_new();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_soon, token) == 0);
    CarbyneDecomposed *decomposed;
    CarbyneStatus status = carbyne_decompose(program, "sm_80", NULL, token, &decomposed, NULL);
    CHECK(status == CARBYNE_STATUS_CANCELLED);
    CHECK(pthread_join(thread, NULL) == 0);
    carbyne_token_free(token);
    carbyne_program_free(program);
}

static void cancellation(const char *path) {
    CarbyneProgram *program = program_at(path);
    CarbyneToken *token = carbyne_token_new();
    CarbyneDecomposed *decomposed;
    CarbyneDiagnostics *said;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_soon, token) == 0);
    CarbyneStatus status = carbyne_decompose(program, "sm_90a", NULL, token, &decomposed, &said);
    CHECK(status == CARBYNE_STATUS_CANCELLED && decomposed == NULL);
    CHECK(carbyne_diagnostics_count(said) == 1);
    carbyne_diagnostics_free(said);
    CHECK(pthread_join(thread, NULL) == 0);
    /* A token stays cancelled. The program is unchanged. */
    for (int i = 0; i < 3; i++) {
        status = carbyne_decompose(program, "sm_90a", NULL, token, &decomposed, NULL);
        CHECK(status == CARBYNE_STATUS_CANCELLED && decomposed == NULL);
        carbyne_token_cancel(token);
    }
    CHECK(carbyne_program_check(program, NULL, token, NULL, NULL) == CARBYNE_STATUS_CANCELLED);
    CHECK(carbyne_program_check(program, NULL, NULL, NULL, NULL) == CARBYNE_STATUS_OK);
    carbyne_token_free(token);
    carbyne_program_free(program);
}

/* Threads with small stacks that share a program and a function. */
struct shared {
    const CarbyneProgram *program;
    const CarbyneFunction *function;
};

static void *use_shared(void *given) {
    const struct shared *shared = given;
    for (int n = 1; n < 6; n++) {
        CarbyneDecomposed *decomposed = decomposed_of(shared->program);
        carbyne_decomposed_free(decomposed);
        float x[8] = {3}, y[8] = {0};
        int64_t extent = n;
        CarbyneTensor tx = vector(x, &extent), ty = vector(y, &extent);
        const CarbyneTensor *arguments[] = {&tx, &ty};
        CHECK(carbyne_function_call(shared->function, arguments, 2, NULL, 0, NULL, NULL, NULL) ==
              CARBYNE_STATUS_OK);
        CHECK(y[0] == 6);
        CarbyneProgram *wrong;
        CarbyneDiagnostics *said;
        expect_code(carbyne_program_new(UNFIT, strlen(UNFIT), NULL, &wrong, &said), &said, "V0208");
    }
    return NULL;
}

static void threads(void) {
    CarbyneProgram *program = program_of(SCALE);
    CarbyneDecomposed *decomposed = decomposed_of(program);
    CarbyneFunction *function;
    CHECK(carbyne_function_new(decomposed, CARBYNE_SIMULATOR, NULL, 0, &function, NULL) ==
          CARBYNE_STATUS_OK);
    struct shared shared = {program, function};
    pthread_t all[16];
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 1 << 16) == 0);
    for (int i = 0; i < 16; i++)
        CHECK(pthread_create(&all[i], &small, use_shared, &shared) == 0);
    for (int i = 0; i < 16; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    pthread_attr_destroy(&small);
    carbyne_function_free(function);
    carbyne_decomposed_free(decomposed);
    carbyne_program_free(program);
}

/* Memory of the process in kilobytes; 0 if unknown. */
static long resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, pages = 0;
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    fclose(file);
    return 4 * pages;
}

static void memory_stays(int cycles) {
    long before = 0;
    for (int i = 0; i < cycles; i++) {
        CarbyneProgram *program = program_of(SCALE), *wrong;
        CarbyneDiagnostics *said;
        expect_code(carbyne_program_new(UNFIT, strlen(UNFIT), NULL, &wrong, &said), &said, "V0208");
        CarbyneDecomposed *decomposed = decomposed_of(program);
        CarbyneBytes *cuda;
        CHECK(carbyne_decomposed_cuda(decomposed, "f", &cuda, NULL) == CARBYNE_STATUS_OK);
        carbyne_bytes_free(cuda);
        carbyne_decomposed_free(decomposed);
        carbyne_program_free(program);
        if (i == cycles / 10)
            before = resident();
    }
    long after = resident();
    printf("%d cycles: %ld KB before, %ld KB after\n", cycles, before, after);
    CHECK(after - before < 4 * 1024);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    CHECK(carbyne_abi_version() == CARBYNE_ABI_VERSION);
    CHECK(strlen(carbyne_version()) >= 5);
    errors_have_code_text_and_place();
    texts_of_all_kinds(NULL);
    texts_of_all_kinds("none.cby");
    wrong_calls();
    simulation_by_names();
    results_are_written_together();
    cancellation(argv[2]);
    proofs_are_cancelled(argv[3]);
    threads();
    memory_stays(atoi(argv[1]));
    puts("all is as it should be");
    return 0;
}
