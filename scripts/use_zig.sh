# Sourced by the Makefile where no C++ compiler is found: make the one of the PyPI package ziglang
# the compiler of the build. Its first run compiles its own libraries, which takes about a minute.
# $bin is the folder of the environment's programs.
echo "no C++ compiler found: installing the PyPI package ziglang, which has one"
if ! "$bin/python" -m pip install -qq ziglang; then
    echo "fgfm needs a C++20 compiler, and ziglang cannot be installed either: install GCC or" \
        "Clang (Debian: apt install g++; Fedora: dnf install gcc-c++; macOS:" \
        "xcode-select --install)" >&2
    exit 1
fi
# -I: the environment in which pip builds hides the packages of this one.
for tool in c++ ar ranlib; do
    flags=
    if [ "$tool" = c++ ]; then flags="-mcpu=baseline"; fi  # not only this machine's processor
    printf '#!/bin/sh\nexec "%s/python" -I -m ziglang %s "$@" %s\n' "$bin" "$tool" "$flags" > "$bin/zig-$tool"
    chmod +x "$bin/zig-$tool"
done
export CXX="$bin/zig-c++"
export CMAKE_ARGS="-DCMAKE_AR=$bin/zig-ar -DCMAKE_RANLIB=$bin/zig-ranlib"
