// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// SBOM lists the Go modules in programs, one program for each platform of the image, and the packages of Debian below them.
func SBOM(s Subject, programs [][]byte, packages []debian.Package) ([]byte, error) {
	components := map[string]cdx.Component{}
	for _, program := range programs {
		if err := addModules(components, program); err != nil {
			return nil, fmt.Errorf("cannot list the modules in %s: %w", s.Name, err)
		}
	}
	for _, p := range packages {
		addPackage(components, p)
	}
	if len(components) == 0 {
		return nil, fmt.Errorf("cannot list what is in %s: it has no program and no package", s.Name)
	}
	list := make([]cdx.Component, 0, len(components))
	for _, c := range components {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })

	bom := cdx.NewBOM()
	bom.SerialNumber = serial(s)
	bom.Metadata = &cdx.Metadata{
		Timestamp: s.Time.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "image", Type: cdx.ComponentTypeContainer, Name: s.Repository, Version: s.Version,
			PackageURL: fmt.Sprintf("pkg:oci/%s@%s?repository_url=%s", s.Name, url.QueryEscape(s.Digest.String()), url.QueryEscape(s.Repository)),
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: s.Digest.Hex}},
		},
	}
	bom.Components = &list
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("cannot encode the SBOM of %s: %w", s.Name, err)
	}
	return out.Bytes(), nil
}

func addModules(components map[string]cdx.Component, program []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	if len(info.Deps) == 0 && info.Main.Path == "" {
		return errors.New("the program does not say which modules are in it")
	}
	add := func(path, version string) {
		reference := "pkg:golang/" + path + "@" + url.PathEscape(version)
		components[reference] = cdx.Component{
			BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: reference,
		}
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		add(module.Path, module.Version)
	}
	return nil
}

func addPackage(components map[string]cdx.Component, p debian.Package) {
	reference := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s", p.Name, url.QueryEscape(p.Version), p.Architecture, p.Suite)
	components[reference] = cdx.Component{
		BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: reference,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.SHA256}},
	}
}

// serial is a UUID (of version 8) that depends on the image alone.
func serial(s Subject) string {
	b := sha256.Sum256([]byte(s.Repository + "@" + s.Digest.String()))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
