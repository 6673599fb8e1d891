// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/capstan-dev/capstan/hack/internal/checkout"
	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/krew"
)

// checksums is the file that covers all others, and is the one that is signed.
const checksums = "checksums.txt"

// copied are the files of the repository that a release has, too, under their own names.
var copied = []string{
	"package/platform.yaml", "package/mirror.yaml", "package/roles.yaml", consoleFile,
	"package/monitoring/adapter.yaml", "package/monitoring/dashboard-database.json", "package/monitoring/dashboard-database-mysql.json", "package/monitoring/dashboard.json",
	"package/monitoring/podmonitor.yaml", "package/monitoring/prometheusrule.yaml", "package/monitoring/rules.yaml", "package/monitoring/scrape.yaml",
}

// write writes all files of a release into a new folder.
func (c *releaseCmd) write(p *project, folder string, images []releasedImage, state checkout.State, key *cosign.Key) error {
	files := map[string][]byte{}
	for _, name := range copied {
		data, err := os.ReadFile(filepath.Join(p.root, name))
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", name, err)
		}
		if path.Base(name) == "mirror.yaml" && c.Registry != publicRegistry {
			data = bytes.ReplaceAll(data, []byte(exampleRegistry), []byte(c.Registry))
		}
		if name == consoleFile {
			if data, err = c.pinConsole(data, images); err != nil {
				return err
			}
		}
		files[fileName(name)] = data
	}
	if err := c.render(files, p, images, key); err != nil {
		return err
	}
	if err := c.describe(files, p, images, state); err != nil {
		return err
	}
	if err := p.addPlugin(files, c.Plugin); err != nil {
		return err
	}
	if err := sum(files, key); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot create a folder for the files of a release: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

var consoleImage = regexp.MustCompile(regexp.QuoteMeta(publicRegistry+"/"+organisation+"/"+consoleName) + `:v[0-9]\S*`)

// pinConsole puts the digest of this release into the manifest of the console.
func (c *releaseCmd) pinConsole(manifest []byte, images []releasedImage) ([]byte, error) {
	for _, img := range images {
		if img.Name != consoleName {
			continue
		}
		if n := len(consoleImage.FindAll(manifest, -1)); n != 1 {
			return nil, fmt.Errorf("cannot pin the image in %s: it is there %d times", consoleFile, n)
		}
		return consoleImage.ReplaceAllLiteral(manifest, fmt.Appendf(nil, "%s@%s", img.repository(c.Registry), img.digest)), nil
	}
	return nil, fmt.Errorf("cannot pin the image in %s: the release has none of that name", consoleFile)
}

// fileName is what a release calls a file: its folders are gone, because a page of downloads has none.
func fileName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "package/"), "/", "-")
}

// A manifest is what the templates below know.
type manifest struct {
	Version  string
	Unsigned bool
	Packages []manifestPackage
	// Prefixes of what has to be signed.
	Prefixes  []string
	PublicKey string
}

type manifestPackage struct {
	Kind, Name, Reference string
	// Runtime is the name of the DeploymentRuntimeConfig; a Configuration has none.
	Runtime string
}

const mark = `# Capstan {{.Version}}{{if .Unsigned}}. UNSIGNED: this release was made without a signature, and nothing proves where it comes from{{end}}.
`

var configurationTemplate = template.Must(template.New("configuration").Parse(mark + `#
#   kubectl apply --filename configuration.yaml
#
# Each package is the one that was released, to the byte. The names are those that Crossplane gives to dependencies: keep them.
{{- range .Packages}}
---
apiVersion: pkg.crossplane.io/v1
kind: {{.Kind}}
metadata:
  name: {{.Name}}
  labels:
    app.kubernetes.io/part-of: capstan
    app.kubernetes.io/version: {{$.Version}}
spec:
  package: {{.Reference}}
{{- if .Runtime}}
  runtimeConfigRef:
    apiVersion: pkg.crossplane.io/v1beta1
    kind: DeploymentRuntimeConfig
    name: {{.Runtime}}
{{- end}}
{{- end}}
`))

var verificationTemplate = template.Must(template.New("verification").Parse(mark + `#
#   kubectl apply --server-side --filename verification.yaml
#
# Crossplane refuses packages below these names unless they are signed with this key. It looks at signatures only when it runs with
# --enable-signature-verification.
---
apiVersion: v1
kind: Secret
metadata:
  name: capstan-cosign
  namespace: crossplane-system
  labels:
    app.kubernetes.io/part-of: capstan
data:
  cosign.pub: {{.PublicKey}}
---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: capstan-verification
  labels:
    app.kubernetes.io/part-of: capstan
spec:
  matchImages:
{{- range .Prefixes}}
    - type: Prefix
      prefix: {{.}}
{{- end}}
  verification:
    provider: Cosign
    cosign:
      authorities:
        - name: capstan
          key:
            secretRef:
              name: capstan-cosign
              key: cosign.pub
            hashAlgorithm: sha256
`))

// render adds what Crossplane reads.
func (c *releaseCmd) render(files map[string][]byte, p *project, images []releasedImage, key *cosign.Key) error {
	m := manifest{Version: p.version, Unsigned: key == nil, Prefixes: []string{publicRegistry + "/" + organisation + "/"}}
	if c.Registry != publicRegistry {
		m.Prefixes = append(m.Prefixes, c.Registry+"/"+organisation+"/")
	}
	var list strings.Builder
	for _, img := range images {
		fmt.Fprintf(&list, "%s@%s\n", img.reference(c.Registry, p.version), img.digest)
		if img.Kind == "" {
			continue
		}
		pkg := manifestPackage{
			Kind: strings.ToUpper(img.Kind[:1]) + img.Kind[1:], Name: img.installed(),
			Reference: fmt.Sprintf("%s/%s/%s@%s", publicRegistry, organisation, img.Name, img.digest),
		}
		if img.Program != "" {
			pkg.Runtime = img.Name
		}
		m.Packages = append(m.Packages, pkg)
	}
	files["images.txt"] = []byte(list.String())
	templates := map[string]*template.Template{"configuration.yaml": configurationTemplate}
	if key != nil {
		m.PublicKey = base64.StdEncoding.EncodeToString(key.Public())
		files["cosign.pub"] = key.Public()
		templates["verification.yaml"] = verificationTemplate
	}
	for name, t := range templates {
		var out bytes.Buffer
		if err := t.Execute(&out, m); err != nil {
			return fmt.Errorf("cannot render %s: %w", name, err)
		}
		files[name] = out.Bytes()
	}
	return nil
}

// sum adds the checksums of all files, in the format of sha256sum, and signs them.
func sum(files map[string][]byte, key *cosign.Key) error {
	var out bytes.Buffer
	for _, name := range sortedKeys(files) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files[checksums] = out.Bytes()
	if key == nil {
		return nil
	}
	signature, err := key.Sign(out.Bytes())
	if err != nil {
		return err
	}
	files[checksums+".sig"] = []byte(base64.StdEncoding.EncodeToString(signature) + "\n")
	return nil
}

// plugin of kubectl. It is no image: people run it on their machines.
var plugin = artifact{Name: krew.Plugin, Program: "./plugin"}

// buildPlugin writes an archive for each platform into the output folder.
func (p *project) buildPlugin(ctx context.Context, platforms []string) error {
	for _, platform := range platforms {
		file := krew.Archive(p.version, platform)
		if err := p.Step("build "+file, nil, func() error { return p.packPlugin(ctx, platform, filepath.Join(p.output, file)) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) packPlugin(ctx context.Context, platform, file string) error {
	dir, err := os.MkdirTemp("", "capstan-plugin-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the plugin: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "program")
	if err := p.compile(ctx, plugin, platform, binary); err != nil {
		return err
	}
	terms, err := p.licences(ctx, plugin, binary)
	if err != nil {
		return err
	}
	const completion = "kubectl_complete-capstan"
	files := append([]image.File{
		{Path: krew.Program(platform), Mode: 0o755, Source: binary},
		{Path: completion, Mode: 0o755, Source: filepath.Join(p.root, "plugin", completion)},
	}, terms...)
	var out bytes.Buffer
	if err := krew.Pack(&out, platform, p.created, files); err != nil {
		return err
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the archive of the plugin: %w", err)
	}
	return nil
}

// addPlugin adds the archives to the files of a release, and the manifest that names them.
func (p *project) addPlugin(files map[string][]byte, platforms []string) error {
	if len(platforms) == 0 {
		return nil
	}
	for _, platform := range platforms {
		file := krew.Archive(p.version, platform)
		data, err := os.ReadFile(filepath.Join(p.output, file))
		if err != nil {
			return fmt.Errorf("cannot add the plugin: %w", err)
		}
		files[file] = data
	}
	manifest, err := krew.Manifest(p.version, homepage, platforms, files)
	if err != nil {
		return err
	}
	files[krew.File] = manifest
	return nil
}
