//! The compression function of SHA-512 (FIPS 180-4, section 6.4.2) in AVX2 and BMI2.
//!
//! # Picture
//! ```text
//! two blocks:  lane 0 of ymm0..7 = 16 words of block 1, lane 1 = the same words of block 2
//!   schedule ─▶ W[t] + K[t] of both blocks ─▶ 80 × 16 bytes on the stack
//!   rounds of block 1 (between the instructions of the schedule), then rounds of block 2
//! ```
//! The method is that of Gueron and Krasnov, "Simultaneous hashing of multiple messages" and
//! "Parallelizing message schedules to accelerate the computations of hash functions" (2012): the
//! words of two blocks are computed together, since the rounds of one block leave the vector units
//! idle. A compiler spills the sixteen registers that the rounds need, hence assembly. The order of
//! a round's instructions was found by trial on Zen 3; any order that respects their dependencies
//! is right.

use std::arch::naked_asm;

use super::BLOCK_BYTES;

/// The constants of FIPS 180-4, section 4.2.3.
const K: [u64; 80] = [
    0x428A_2F98_D728_AE22,
    0x7137_4491_23EF_65CD,
    0xB5C0_FBCF_EC4D_3B2F,
    0xE9B5_DBA5_8189_DBBC,
    0x3956_C25B_F348_B538,
    0x59F1_11F1_B605_D019,
    0x923F_82A4_AF19_4F9B,
    0xAB1C_5ED5_DA6D_8118,
    0xD807_AA98_A303_0242,
    0x1283_5B01_4570_6FBE,
    0x2431_85BE_4EE4_B28C,
    0x550C_7DC3_D5FF_B4E2,
    0x72BE_5D74_F27B_896F,
    0x80DE_B1FE_3B16_96B1,
    0x9BDC_06A7_25C7_1235,
    0xC19B_F174_CF69_2694,
    0xE49B_69C1_9EF1_4AD2,
    0xEFBE_4786_384F_25E3,
    0x0FC1_9DC6_8B8C_D5B5,
    0x240C_A1CC_77AC_9C65,
    0x2DE9_2C6F_592B_0275,
    0x4A74_84AA_6EA6_E483,
    0x5CB0_A9DC_BD41_FBD4,
    0x76F9_88DA_8311_53B5,
    0x983E_5152_EE66_DFAB,
    0xA831_C66D_2DB4_3210,
    0xB003_27C8_98FB_213F,
    0xBF59_7FC7_BEEF_0EE4,
    0xC6E0_0BF3_3DA8_8FC2,
    0xD5A7_9147_930A_A725,
    0x06CA_6351_E003_826F,
    0x1429_2967_0A0E_6E70,
    0x27B7_0A85_46D2_2FFC,
    0x2E1B_2138_5C26_C926,
    0x4D2C_6DFC_5AC4_2AED,
    0x5338_0D13_9D95_B3DF,
    0x650A_7354_8BAF_63DE,
    0x766A_0ABB_3C77_B2A8,
    0x81C2_C92E_47ED_AEE6,
    0x9272_2C85_1482_353B,
    0xA2BF_E8A1_4CF1_0364,
    0xA81A_664B_BC42_3001,
    0xC24B_8B70_D0F8_9791,
    0xC76C_51A3_0654_BE30,
    0xD192_E819_D6EF_5218,
    0xD699_0624_5565_A910,
    0xF40E_3585_5771_202A,
    0x106A_A070_32BB_D1B8,
    0x19A4_C116_B8D2_D0C8,
    0x1E37_6C08_5141_AB53,
    0x2748_774C_DF8E_EB99,
    0x34B0_BCB5_E19B_48A8,
    0x391C_0CB3_C5C9_5A63,
    0x4ED8_AA4A_E341_8ACB,
    0x5B9C_CA4F_7763_E373,
    0x682E_6FF3_D6B2_B8A3,
    0x748F_82EE_5DEF_B2FC,
    0x78A5_636F_4317_2F60,
    0x84C8_7814_A1F0_AB72,
    0x8CC7_0208_1A64_39EC,
    0x90BE_FFFA_2363_1E28,
    0xA450_6CEB_DE82_BDE9,
    0xBEF9_A3F7_B2C6_7915,
    0xC671_78F2_E372_532B,
    0xCA27_3ECE_EA26_619C,
    0xD186_B8C7_21C0_C207,
    0xEADA_7DD6_CDE0_EB1E,
    0xF57D_4F7F_EE6E_D178,
    0x06F0_67AA_7217_6FBA,
    0x0A63_7DC5_A2C8_98A6,
    0x113F_9804_BEF9_0DAE,
    0x1B71_0B35_131C_471B,
    0x28DB_77F5_2304_7D84,
    0x32CA_AB7B_40C7_2493,
    0x3C9E_BE0A_15C9_BEBC,
    0x431D_67C4_9C10_0D4C,
    0x4CC5_D4BE_CB3E_42B6,
    0x597F_299C_FC65_7E2A,
    0x5FCB_6FAB_3AD6_FAEC,
    0x6C44_198C_4A47_5817,
];

/// What the vector instructions read.
#[repr(C, align(32))]
struct Constants {
    /// [`K`] by pairs, each pair twice: for both lanes.
    doubled: [u64; 160],
    /// Rotates each word right by 8 bits.
    rotate: [u8; 16],
    /// Reverses the bytes of each word.
    reverse: [u8; 16],
}

static CONSTANTS: Constants = Constants {
    doubled: {
        let mut doubled = [0; 160];
        let mut t = 0;
        while t < K.len() {
            let at = t / 2 * 4 + t % 2;
            (doubled[at], doubled[at + 2]) = (K[t], K[t]);
            t += 1;
        }
        doubled
    },
    rotate: [1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15, 8],
    reverse: [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8],
};

/// Whether this processor has the instructions.
pub(super) fn are_supported() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// Adds whole blocks to the hash `state`.
///
/// # Safety
/// [`are_supported`] must hold.
pub(super) unsafe fn compress(state: &mut [u64; 8], blocks: &[[u8; BLOCK_BYTES]]) {
    if !blocks.is_empty() {
        // SAFETY: there are `blocks.len()` blocks, at least one, and the caller promises the
        // instructions.
        unsafe { compress_blocks(state, blocks.as_ptr(), blocks.len()) }
    }
}

/// # Safety
/// [`are_supported`] must hold; `blocks` points to `count` blocks; `count` is not 0.
#[unsafe(naked)]
unsafe extern "sysv64" fn compress_blocks(
    state: &mut [u64; 8],
    blocks: *const [u8; BLOCK_BYTES],
    count: usize,
) {
    // Registers: the state a..h in rax, rbx, rcx, rdx, r8 to r11 (each round shifts their roles by
    // one place); rbp the words of the next 16 rounds, rsi their constants; r12 to r15 and rdi for
    // one round; ymm0..7 the last 16 words, ymm8..11 for the schedule, ymm12, ymm13 the shuffles.
    //
    // The stack, from rsp: 1280 bytes of words, then the state's address, the next block's address,
    // the number of blocks that are left, the caller's rsp, how often 16 rounds still come.
    naked_asm!(
        r#"
// One round. On entry `a` lacks the Sigma0 of the round before, which r13 holds; `n` is b ^ c; rdi
// is f. Afterwards `h` is the new a, r13 its missing Sigma0, and `m` a ^ b, the next round's b ^ c.
// Maj(a, b, c) = ((a ^ b) & (b ^ c)) ^ b; Ch(e, f, g) = (e & f) + (!e & g). v0 to v11 are
// instructions of the schedule, which run beside the round.
.macro sha512_round a b c d e f g h m n at v0 v1 v2 v3 v4 v5 v6 v7 v8 v9 v10 v11
    rorx \m, \e, 18
    add \h, [rbp + \at]
    \v0
    and rdi, \e
    rorx r12, \e, 41
    \v1
    xor r12, \m
    lea \a, [\a + r13]
    \v2
    rorx r13, \e, 14
    lea \h, [\h + rdi]
    \v3
    andn rdi, \e, \g
    xor r12, r13
    \v4
    lea \h, [\h + rdi]
    lea \h, [\h + r12]
    \v5
    mov \m, \a
    rorx rdi, \a, 39
    \v6
    rorx r13, \a, 34
    rorx r12, \a, 28
    \v7
    xor \m, \b
    and \n, \m
    \v8
    xor r13, rdi
    xor r13, r12
    \v9
    xor \n, \b
    mov rdi, \e
    \v10
    lea \d, [\d + \h]
    lea \h, [\h + \n]
    \v11
.endm

// Two rounds of block 1, and the words for both blocks that are used 16 rounds later: x0 = words
// t-16 and t-15, x1 = t-14 and t-13, x4 = t-8 and t-7, x5 = t-6 and t-5, x7 = t-2 and t-1.
.macro sha512_rounds_and_words a, b, c, d, e, f, g, h, x0, x1, x4, x5, x7, at
"#,
        concat!(
            r#"    sha512_round \a, \b, \c, \d, \e, \f, \g, \h, r14, r15, \at, "#,
            r#""vpalignr ymm8, \x1, \x0, 8", "#,
            r#""vpalignr ymm9, \x5, \x4, 8", "#,
            r#""vpsrlq ymm10, ymm8, 1", "#,
            r#""vpaddq \x0, \x0, ymm9", "#,
            r#""vpsllq ymm11, ymm8, 63", "#,
            r#""vpshufb ymm9, ymm8, ymm12", "#,
            r#""vpxor ymm10, ymm10, ymm11", "#,
            r#""vpsrlq ymm8, ymm8, 7", "#,
            r#""vpxor ymm10, ymm10, ymm9", "#,
            r#""vpxor ymm10, ymm10, ymm8", "#,
            r#""vpsrlq ymm8, \x7, 19", "#,
            r#""vpaddq \x0, \x0, ymm10""#,
        ),
        concat!(
            r#"    sha512_round \h, \a, \b, \c, \d, \e, \f, \g, r15, r14, \at + 8, "#,
            r#""vpsllq ymm9, \x7, 45", "#,
            r#""vpsrlq ymm10, \x7, 61", "#,
            r#""vpxor ymm8, ymm8, ymm9", "#,
            r#""vpsllq ymm11, \x7, 3", "#,
            r#""vpsrlq ymm9, \x7, 6", "#,
            r#""vpxor ymm10, ymm10, ymm11", "#,
            r#""vpxor ymm8, ymm8, ymm9", "#,
            r#""vpxor ymm8, ymm8, ymm10", "#,
            r#""vpaddq \x0, \x0, ymm8", "#,
            r#""vpaddq ymm9, \x0, [rsi + \at]", "#,
            r#""vmovdqa [rbp + 256 + \at], ymm9""#,
        ),
        r#"
.endm

// 16 rounds of the block whose words begin at rbp + `lane`.
.macro sha512_rounds lane
    sha512_round rax, rbx, rcx, rdx, r8, r9, r10, r11, r14, r15, \lane
    sha512_round r11, rax, rbx, rcx, rdx, r8, r9, r10, r15, r14, \lane + 8
    sha512_round r10, r11, rax, rbx, rcx, rdx, r8, r9, r14, r15, \lane + 32
    sha512_round r9, r10, r11, rax, rbx, rcx, rdx, r8, r15, r14, \lane + 40
    sha512_round r8, r9, r10, r11, rax, rbx, rcx, rdx, r14, r15, \lane + 64
    sha512_round rdx, r8, r9, r10, r11, rax, rbx, rcx, r15, r14, \lane + 72
    sha512_round rcx, rdx, r8, r9, r10, r11, rax, rbx, r14, r15, \lane + 96
    sha512_round rbx, rcx, rdx, r8, r9, r10, r11, rax, r15, r14, \lane + 104
    sha512_round rax, rbx, rcx, rdx, r8, r9, r10, r11, r14, r15, \lane + 128
    sha512_round r11, rax, rbx, rcx, rdx, r8, r9, r10, r15, r14, \lane + 136
    sha512_round r10, r11, rax, rbx, rcx, rdx, r8, r9, r14, r15, \lane + 160
    sha512_round r9, r10, r11, rax, rbx, rcx, rdx, r8, r15, r14, \lane + 168
    sha512_round r8, r9, r10, r11, rax, rbx, rcx, rdx, r14, r15, \lane + 192
    sha512_round rdx, r8, r9, r10, r11, rax, rbx, rcx, r15, r14, \lane + 200
    sha512_round rcx, rdx, r8, r9, r10, r11, rax, rbx, r14, r15, \lane + 224
    sha512_round rbx, rcx, rdx, r8, r9, r10, r11, rax, r15, r14, \lane + 232
.endm

// Loads 2 words of both blocks (at rsi and rdi), and stores them with their constants.
.macro sha512_first_words x, at, word_at
    vmovdqu xmm8, [rsi + \at]
    vinserti128 ymm8, ymm8, [rdi + \at], 1
    vpshufb \x, ymm8, ymm13
    vpaddq ymm8, \x, [rbp + \word_at]
    vmovdqa [rsp + \word_at], ymm8
.endm

.macro sha512_load_state
    mov rdi, [rsp + 1280]
    mov rax, [rdi]
    mov rbx, [rdi + 8]
    mov rcx, [rdi + 16]
    mov rdx, [rdi + 24]
    mov r8, [rdi + 32]
    mov r9, [rdi + 40]
    mov r10, [rdi + 48]
    mov r11, [rdi + 56]
    xor r13d, r13d
    mov r15, rbx
    xor r15, rcx
    mov rdi, r9
    mov rbp, rsp
.endm

.macro sha512_add_state
    add rax, r13
    mov rdi, [rsp + 1280]
    add [rdi], rax
    add [rdi + 8], rbx
    add [rdi + 16], rcx
    add [rdi + 24], rdx
    add [rdi + 32], r8
    add [rdi + 40], r9
    add [rdi + 48], r10
    add [rdi + 56], r11
.endm

    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov rax, rsp
    sub rsp, 1344
    and rsp, -64
    mov [rsp + 1280], rdi
    mov [rsp + 1296], rdx
    mov [rsp + 1304], rax
    vbroadcasti128 ymm12, [rip + {constants} + 1280]
    vbroadcasti128 ymm13, [rip + {constants} + 1296]
2:
    // A last block without another one is in both lanes.
    mov [rsp + 1288], rsi
    mov rdi, rsi
    cmp qword ptr [rsp + 1296], 1
    je 3f
    add rdi, 128
3:
    lea rbp, [rip + {constants}]
    sha512_first_words ymm0, 0, 0
    sha512_first_words ymm1, 16, 32
    sha512_first_words ymm2, 32, 64
    sha512_first_words ymm3, 48, 96
    sha512_first_words ymm4, 64, 128
    sha512_first_words ymm5, 80, 160
    sha512_first_words ymm6, 96, 192
    sha512_first_words ymm7, 112, 224
    lea rsi, [rbp + 256]
    mov dword ptr [rsp + 1312], 4
    sha512_load_state
    .p2align 5
4:
    sha512_rounds_and_words rax, rbx, rcx, rdx, r8, r9, r10, r11, ymm0, ymm1, ymm4, ymm5, ymm7, 0
    sha512_rounds_and_words r10, r11, rax, rbx, rcx, rdx, r8, r9, ymm1, ymm2, ymm5, ymm6, ymm0, 32
    sha512_rounds_and_words r8, r9, r10, r11, rax, rbx, rcx, rdx, ymm2, ymm3, ymm6, ymm7, ymm1, 64
    sha512_rounds_and_words rcx, rdx, r8, r9, r10, r11, rax, rbx, ymm3, ymm4, ymm7, ymm0, ymm2, 96
    sha512_rounds_and_words rax, rbx, rcx, rdx, r8, r9, r10, r11, ymm4, ymm5, ymm0, ymm1, ymm3, 128
    sha512_rounds_and_words r10, r11, rax, rbx, rcx, rdx, r8, r9, ymm5, ymm6, ymm1, ymm2, ymm4, 160
    sha512_rounds_and_words r8, r9, r10, r11, rax, rbx, rcx, rdx, ymm6, ymm7, ymm2, ymm3, ymm5, 192
    sha512_rounds_and_words rcx, rdx, r8, r9, r10, r11, rax, rbx, ymm7, ymm0, ymm3, ymm4, ymm6, 224
    add rbp, 256
    add rsi, 256
    dec dword ptr [rsp + 1312]
    jnz 4b
    sha512_rounds 0
    sha512_add_state
    dec qword ptr [rsp + 1296]
    jz 6f
    mov dword ptr [rsp + 1312], 5
    sha512_load_state
    .p2align 5
5:
    sha512_rounds 16
    add rbp, 256
    dec dword ptr [rsp + 1312]
    jnz 5b
    sha512_add_state
    mov rsi, [rsp + 1288]
    add rsi, 256
    dec qword ptr [rsp + 1296]
    jnz 2b
6:
    vzeroupper
    mov rsp, [rsp + 1304]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
"#,
        constants = sym CONSTANTS,
    )
}
