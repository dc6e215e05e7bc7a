//! What is made of single blocks of AES-256: the subkeys of CMAC and XAES, a link of their chains, a name.

use aes_gcm::aes::{Aes256Enc, cipher::BlockCipherEncrypt as _};

/// `block` under AES.
pub(super) fn encrypted(aes: &Aes256Enc, block: u128) -> u128 {
    let mut block = block.to_be_bytes();
    aes.encrypt_block((&mut block).into());
    u128::from_be_bytes(block)
}

/// `block` times x in GF(2¹²⁸), as CMAC makes its subkeys (SP 800-38B §6.1). Without a branch: the block is a secret.
pub(super) const fn doubled(block: u128) -> u128 {
    (block << 1) ^ ((block >> 127) * 0x87)
}
