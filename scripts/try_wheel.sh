#!/bin/sh
# Try a wheel in a bare environment: the README's first examples, and again with files that cannot be
# written, without a home folder and, if this is root, as the user nobody.
set -eu
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
chmod 755 "$folder"
python=python3
if [ "$(id -u)" = 0 ] && [ -x /usr/bin/python3 ]; then python=/usr/bin/python3; fi  # nobody's too
"$python" -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -qq "$wheel"
du -sh "$folder"/env/lib/python*/site-packages/fgfm | sed 's/\t.*/ installed/'
chmod -R a+rX,a-w "$folder/env"
cat > "$folder/try.py" <<'END'
import numpy as np
import fgfm
import fgfm._kernels

print(fgfm.__version__, fgfm._kernels.native.__name__)
print(fgfm.decision.from_marginals([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]]))
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = (X + rng.normal(size=X.shape) > 0).astype(int)
print(fgfm.FGFMClassifier(random_state=0).fit(X, Y).predict(X[:2]))
END
cd "$folder"
env -i PATH=/usr/bin:/bin "$folder/env/bin/python" try.py
if [ "$(id -u)" = 0 ]; then
    setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -i PATH=/usr/bin:/bin HOME=/nonexistent "$folder/env/bin/python" try.py
    echo "and as nobody, without a home: the same"
fi
