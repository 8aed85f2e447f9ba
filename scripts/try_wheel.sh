#!/bin/sh
# Try a wheel, an sdist, or what pip chooses from a folder of them, in a bare environment of $PYTHON:
# the README's first examples, and again with files that cannot be written, without a home folder
# and, if this is root, as the user nobody. With a second argument, "oldest", on the oldest versions
# of its dependencies that it allows.
set -eu
package=$(realpath "$1")
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
chmod 755 "$folder"
python=${PYTHON:-python3}
nobody=
if [ "$(id -u)" = 0 ] && [ -z "${PYTHON-}" ] && [ -x /usr/bin/python3 ]; then
    python=/usr/bin/python3  # nobody's too
    nobody=yes
fi
"$python" -m venv "$folder/env"
install() { "$folder/env/bin/python" -m pip install -qq "$@"; }
if [ -d "$package" ]; then
    install --only-binary fgfm --find-links "$package" fgfm
else
    install "$package"
fi
if [ "${2-}" = oldest ]; then
    # shellcheck disable=SC2046 # one argument per requirement
    install $("$folder/env/bin/python" -c '
import re
from importlib.metadata import requires
for requirement in requires("fgfm"):
    if "extra" not in requirement:
        print(re.sub(">=(.*)", r"==\1.*", requirement))')
fi
du -sh "$folder"/env/lib/python*/site-packages/fgfm | sed 's/\t.*/ installed/'
for kernel in "$folder"/env/lib/python*/site-packages/fgfm/_kernels/*.so; do
    # Its only entry is that of Python; the rest are templates (weak symbols).
    if command -v nm >/dev/null && nm -D --defined-only "$kernel" | grep -v ' [VWu] \| PyInit__'; then
        echo "$kernel exports these symbols" >&2
        exit 1
    fi
done
chmod -R a+rX,a-w "$folder/env"
cat > "$folder/try.py" <<'END_OF_PROGRAM'
import sys

import numpy as np
import scipy.sparse
import sklearn

import fgfm
import fgfm._kernels

print(f"fgfm {fgfm.__version__}, {fgfm._kernels.native.__name__}; Python {sys.version.split()[0]}")
print(f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}")
proba = scipy.sparse.csr_array([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]])
print(fgfm.decision.from_marginals(proba.toarray()), fgfm.decision.from_marginals(proba).labels.nnz)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = (X + rng.normal(size=X.shape) > 0).astype(int)
model = fgfm.FClassifier(random_state=0).fit(X, Y)
print(model.predict(X[:2]))
print(fgfm.FDecider(average="macro").fit(model.predict_proba(X), Y).thresholds_.round(2))
END_OF_PROGRAM
cd "$folder"
env -i PATH=/usr/bin:/bin "$folder/env/bin/python" try.py
if [ -n "$nobody" ]; then
    setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -i PATH=/usr/bin:/bin HOME=/nonexistent "$folder/env/bin/python" try.py
    echo "and as nobody, without a home: the same"
fi
