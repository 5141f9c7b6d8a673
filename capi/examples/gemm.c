/* A matrix product: from its text to CUDA C++, and executed on the CPU. */
#include <carbyne.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 64, N = 64, K = 32 };

static const char TEXT[] = "carbyne 2\n"
                           "%A:[64,32].f32.GL\n"
                           "%B:[32,64].f32.GL\n"
                           "%C:[64,64].f32.GL\n"
                           "MatMul.set @gemm (%A, %B) -> (%C) acc=f32\n";

/* Prints errors and warnings, and ends the program if a call has failed. */
static void expect_ok(CarbyneStatus status, CarbyneDiagnostics **said) {
    if (*said != NULL)
        fprintf(stderr, "%s\n", carbyne_diagnostics_rendered(*said));
    carbyne_diagnostics_free(*said);
    if (status != CARBYNE_STATUS_OK)
        exit(1);
}

/* A row-major matrix of floats on the CPU. */
static CarbyneTensor matrix(float *data, const int64_t shape[2]) {
    CarbyneTensor tensor = {.data = data, .ndim = 2, .shape = shape};
    tensor.device.device_type = 1; /* the CPU */
    tensor.dtype.code = 2;         /* a floating-point number */
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 1;
    return tensor;
}

int main(void) {
    CarbyneDiagnostics *said;
    CarbyneProgram *program;
    CarbyneDecomposed *decomposed;
    CarbyneBytes *cuda, *abi;

    expect_ok(carbyne_program_new(TEXT, strlen(TEXT), NULL, &program, &said), &said);

    CarbyneDecomposeOptions options = {.size = sizeof options, .sms = 108};
    expect_ok(carbyne_decompose(program, "sm_80", &options, NULL, &decomposed, &said), &said);

    /* CUDA C++ for nvcc or NVRTC, and the data that a launcher needs. */
    expect_ok(carbyne_decomposed_cuda(decomposed, "gemm", &cuda, &said), &said);
    expect_ok(carbyne_decomposed_abi(decomposed, &abi, &said), &said);
    printf("%s%s\n", carbyne_bytes_data(cuda), carbyne_bytes_data(abi));

    /* The same function runs on a GPU of that number in the place of the simulator. */
    CarbyneFunction *gemm;
    expect_ok(carbyne_function_new(decomposed, CARBYNE_SIMULATOR, NULL, 0, &gemm, &said), &said);

    static float a[M][K], b[K][N], c[M][N];
    for (int i = 0; i < M * K; i++)
        a[i / K][i % K] = (float)(i % 7 - 3);
    for (int i = 0; i < K * N; i++)
        b[i / N][i % N] = (float)(i % 5 - 2);
    CarbyneTensor ta = matrix(a[0], (const int64_t[]){M, K});
    CarbyneTensor tb = matrix(b[0], (const int64_t[]){K, N});
    CarbyneTensor tc = matrix(c[0], (const int64_t[]){M, N});
    const CarbyneTensor *arguments[] = {&ta, &tb, &tc};
    expect_ok(carbyne_function_call(gemm, arguments, 3, NULL, 0, NULL, NULL, &said), &said);

    int wrong = 0;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[i][k] * b[k][j];
            wrong += sum != c[i][j];
        }
    }
    fprintf(stderr, "%d wrong elements\n", wrong);

    carbyne_function_free(gemm);
    carbyne_bytes_free(abi);
    carbyne_bytes_free(cuda);
    carbyne_decomposed_free(decomposed);
    carbyne_program_free(program);
    return wrong != 0;
}
