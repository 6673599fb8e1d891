// SPDX-License-Identifier: Apache-2.0

// Package krew packs the plugin of kubectl into archives, and writes the manifest that Krew installs it by.
package krew

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// Plugin is the name of the program, which kubectl finds it by.
const Plugin = "kubectl-capstan"

// File is the name of the manifest.
const File = "krew-capstan.yaml"

// windows has other archives, and another name of programs.
const windows = "windows"

// Archive is the name of the archive of a platform, as in kubectl-capstan-v0.1.0-linux-amd64.tar.gz.
func Archive(version, platform string) string {
	extension := ".tar.gz"
	if strings.HasPrefix(platform, windows) {
		extension = ".zip"
	}
	return fmt.Sprintf("%s-%s-%s%s", Plugin, version, strings.ReplaceAll(platform, "/", "-"), extension)
}

// Program is the name of the program in the archive of a platform.
func Program(platform string) string {
	if strings.HasPrefix(platform, windows) {
		return Plugin + ".exe"
	}
	return Plugin
}

// Pack files as zip or as tar.gz, by the platform. The same files and time give the same bytes.
func Pack(out io.Writer, platform string, created time.Time, files []image.File) error {
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	if strings.HasPrefix(platform, windows) {
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
		if err := write(strings.TrimPrefix(f.Path, "/"), f.Mode, content); err != nil {
			return fmt.Errorf("cannot archive %s: %w", f.Path, err)
		}
	}
	return nil
}

var manifest = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
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

// Manifest for archives of a version by their platforms, which users download from the homepage.
func Manifest(version, homepage string, platforms []string, archives map[string][]byte) ([]byte, error) {
	type entry struct{ OS, Architecture, File, Sum, Program string }
	all := make([]entry, 0, len(platforms))
	for _, platform := range platforms {
		file := Archive(version, platform)
		system, architecture, _ := strings.Cut(platform, "/")
		all = append(all, entry{system, architecture, file, fmt.Sprintf("%x", sha256.Sum256(archives[file])), Program(platform)})
	}
	var out bytes.Buffer
	if err := manifest.Execute(&out, map[string]any{"Version": version, "Homepage": homepage, "Platforms": all}); err != nil {
		return nil, fmt.Errorf("cannot render %s: %w", File, err)
	}
	return out.Bytes(), nil
}
