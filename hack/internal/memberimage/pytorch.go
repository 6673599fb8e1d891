// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"path"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// PyTorch is no image of a database's members: it has what a real training needs, for tests of the night and for the comparison with
// torchrun. No release has it, and no catalogue describes it.
func PyTorch() Image {
	image := Image{
		Name:    "demo-pytorch",
		Env:     env("PYTHONDONTWRITEBYTECODE=1", "USE_LIBUV=0"), // Debian builds PyTorch without libuv, and ranks would want it.
		account: "pytorch",
		request: debian.Request{
			Architectures: []string{"amd64"},
			Suites:        []string{"trixie", "trixie-security"},
			Names:         common("python3", "python3-torch"),
			Without: []string{
				// What only installs and configures packages on a machine.
				"adduser", "debconf", "dpkg", "init-system-helpers", "passwd", "perl", "tar",
				// Devices of AMD, which UCX alone would load, and a compiler that nothing here links.
				"libamd-comgr2", "libamdhip64-5", "libhsa-runtime64-1", "libllvm17t64",
				// For tests of PyTorch itself, and for graphs of the compiler.
				"python3-hypothesis", "python3-networkx",
			},
		},
		version: func(debian.Package) string { return "" },
		omitted: []string{
			`usr/lib/libtorch-test`,
			`usr/lib/python3/dist-packages/(numpy|sympy|torch)/(.*/)?tests?`,
			`usr/lib/python3[^/]*/(ensurepip|idlelib|pydoc_data|test|tkinter|turtledemo)`,
			`usr/share/(X11|fish|python3/runtime\.d|zsh)`,
		},
	}
	// Alternatives that an installation would choose.
	for _, library := range []string{"blas", "lapack"} {
		file := "lib" + library + ".so.3"
		image.files = append(image.files, made{path: path.Join("usr/lib/x86_64-linux-gnu", file), link: path.Join(library, file)})
	}
	return image
}
