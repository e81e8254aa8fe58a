# shellcheck shell=bash
# Sourced by the scripts of this folder, from the top of the checkout.

cores=$(nproc)

# A machine without a home directory (containers, CI accounts) has no place for the compiler cache.
if [[ -z ${CCACHE_DIR:-} && ! -w ${HOME:-/nonexistent} ]]; then
  export CCACHE_DIR="$PWD/.cache/ccache"
fi

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$cores" ${1:+--target "$@"}
}

# ThreadSanitizer of older compilers cannot start under the address layout of newer kernels; where
# allowed, the layout is fixed (also while building: test programs are started to list their cases).
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
  # shellcheck disable=SC2034  # of those who source this
  fixed_addresses=(setarch "$(uname -m)" -R)
fi
