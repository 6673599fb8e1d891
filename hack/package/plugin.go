// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// plugin of kubectl. It is no image: people run it on their machines.
var plugin = artifact{Name: "kubectl-capstan", Program: "./plugin"}

// windows has other archives, and another name of programs.
const windows = "windows"

// pluginFile is the archive of a platform, as in kubectl-capstan-v0.1.0-linux-amd64.tar.gz.
func pluginFile(version, platform string) string {
	extension := ".tar.gz"
	if strings.HasPrefix(platform, windows) {
		extension = ".zip"
	}
	return fmt.Sprintf("%s-%s-%s%s", plugin.Name, version, strings.ReplaceAll(platform, "/", "-"), extension)
}

// pluginProgram is the name of the program in the archive.
func pluginProgram(platform string) string {
	if strings.HasPrefix(platform, windows) {
		return plugin.Name + ".exe"
	}
	return plugin.Name
}

// buildPlugin writes an archive for each platform into the output folder.
func (p *project) buildPlugin(ctx context.Context, platforms []string) error {
	for _, platform := range platforms {
		file := pluginFile(p.version, platform)
		if err := p.Step("build "+file, nil, func() error { return p.archivePlugin(ctx, platform, filepath.Join(p.output, file)) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) archivePlugin(ctx context.Context, platform, file string) error {
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
	files := append([]image.File{
		{Path: pluginProgram(platform), Mode: 0o755, Source: binary},
		{Path: "kubectl_complete-capstan", Mode: 0o755, Source: filepath.Join(p.root, "plugin", "kubectl_complete-capstan")},
	}, terms...)
	var out bytes.Buffer
	if err := archive(&out, strings.HasSuffix(file, ".zip"), p.created, files); err != nil {
		return err
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the archive of the plugin: %w", err)
	}
	return nil
}

// archive files as zip or as tar.gz. The same files and time give the same bytes.
func archive(out io.Writer, zipped bool, created time.Time, files []image.File) error {
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	if zipped {
		w := zip.NewWriter(out)
		return errors.Join(each(files, func(name string, mode fs.FileMode, content []byte) error {
			header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: created.UTC()}
			header.SetMode(mode)
			f, err := w.CreateHeader(header)
			if err == nil {
				_, err = f.Write(content)
			}
			return err
		}), w.Close())
	}
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	return errors.Join(each(files, func(name string, mode fs.FileMode, content []byte) error {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: int64(mode), Size: int64(len(content)), ModTime: created.UTC()})
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}), w.Close(), compressed.Close())
}

// each file with its content.
func each(files []image.File, write func(name string, mode fs.FileMode, content []byte) error) error {
	for _, f := range files {
		content := f.Content
		if f.Source != "" {
			var err error
			if content, err = os.ReadFile(f.Source); err != nil {
				return fmt.Errorf("cannot read %s: %w", f.Path, err)
			}
		}
		if err := write(strings.TrimPrefix(f.Path, "/"), fs.FileMode(f.Mode), content); err != nil {
			return fmt.Errorf("cannot archive %s: %w", f.Path, err)
		}
	}
	return nil
}

// krewManifest is what Krew, the package manager of kubectl's plugins, installs the plugin by.
var krewManifest = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: capstan
spec:
  version: {{.Version}}
  homepage: {{.Homepage}}
  shortDescription: See and operate Algorithms and Databases of Capstan
  description: |
    Shows Algorithms and Databases of Capstan on one screen, with what blocks them and what to do. Pauses, approves, promotes and aborts
    rollouts; switches databases over, restores, backs up and rotates. Each act is an edit of the spec, and --print shows it for Git.
    Opens psql and mysql in the leader, merges logs, finds what a cluster lacks, and collects a support bundle without Secrets.
  platforms:
{{- range .Platforms}}
    - selector:
        matchLabels: {os: {{.OS}}, arch: {{.Architecture}}}
      uri: {{$.Homepage}}/releases/download/{{$.Version}}/{{.File}}
      sha256: {{.Sum}}
      bin: {{.Program}}
{{- end}}
`))

// krewFile is the name of the manifest among the files of a release.
const krewFile = "krew-capstan.yaml"

// addPlugin adds the archives to the files of a release, and the manifest that names them.
func (p *project) addPlugin(files map[string][]byte, platforms []string) error {
	if len(platforms) == 0 {
		return nil
	}
	type entry struct{ OS, Architecture, File, Sum, Program string }
	var all []entry
	for _, platform := range platforms {
		file := pluginFile(p.version, platform)
		data, err := os.ReadFile(filepath.Join(p.output, file))
		if err != nil {
			return fmt.Errorf("cannot add the plugin: %w", err)
		}
		files[file] = data
		system, architecture, _ := strings.Cut(platform, "/")
		all = append(all, entry{system, architecture, file, fmt.Sprintf("%x", sha256.Sum256(data)), pluginProgram(platform)})
	}
	var out bytes.Buffer
	if err := krewManifest.Execute(&out, map[string]any{"Version": p.version, "Homepage": homepage, "Platforms": all}); err != nil {
		return fmt.Errorf("cannot render %s: %w", krewFile, err)
	}
	files[krewFile] = out.Bytes()
	return nil
}
