#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Options that test/hip-launcher shows a compiler cache, and those that the compiler gets: with a cache that only tells
# its arguments and calls its prefix, and a compiler that tells its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/ccache" << 'END'
#!/usr/bin/env bash
printf '%s\n' "$@" > "$FOLDER/seen"
exec "$CCACHE_PREFIX" "$@"
END
cat > "$folder/compiler" << 'END'
#!/usr/bin/env bash
printf '%s\n' "$@" > "$FOLDER/given"
exit 3
END
chmod +x "$folder/ccache" "$folder/compiler"

given=(-DNDEBUG -O3 -Xarch_host -O0 "-DNAME=\"a b\"" -Xarch_device -mllvm=-disable-machine-licm -xhip
  -Xarch_gfx90a -O0 -c a.cpp)
seen=(compiler -DNDEBUG -O3 -DXarch_host=-O0 "-DNAME=\"a b\"" -DXarch_device=-mllvm=-disable-machine-licm -xhip
  -DXarch_gfx90a=-O0 -c a.cpp)
status=0
FOLDER=$folder PATH="$folder:$PATH" CCACHE_PREFIX= "$PWD/hip-launcher" compiler "${given[@]}" || status=$?

diff <(printf '%s\n' "${seen[@]}") "$folder/seen"
diff <(printf '%s\n' "${given[@]}") "$folder/given"
[ "$status" = 3 ] || { echo "the compiler's status 3 became $status"; exit 1; }
