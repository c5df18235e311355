/* Rust asks this library for random bytes, and Wine 8.0 does not have it. Put beside a program, it lets it start there. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return RtlGenRandom(bytes, (ULONG)count);
}
