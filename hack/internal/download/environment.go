// SPDX-License-Identifier: Apache-2.0

package download

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// ModeVariable is the environment variable that says where programs come from: auto, download or build.
const ModeVariable = "CAPSTAN_PROGRAMS"

// MirrorVariable is the environment variable with the address of a mirror. Below it every file has the host and the path of its
// original address: https://mirror.example.org/releases/get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz.
const MirrorVariable = "CAPSTAN_DOWNLOADS"

// PinsVariable is the environment variable with the path of a file of pins that replaces pins.yaml, for files that another program
// has made.
const PinsVariable = "CAPSTAN_DOWNLOADS_PINS"

// A Mode says where programs come from.
type Mode string

const (
	// ModeAuto downloads what is pinned and can be reached, and builds the rest.
	ModeAuto Mode = "auto"
	// ModeDownload builds only what is not published. It fails when a published file cannot be had.
	ModeDownload Mode = "download"
	// ModeBuild downloads nothing.
	ModeBuild Mode = "build"
)

// secure is the only scheme that a redirect must not leave and that makes a publisher's list of checksums trustworthy.
const secure = "https"

const (
	// probeTimeout is how long a site may take to answer at all.
	probeTimeout = 3 * time.Second
	// stallTimeout is how long stallBytes may take. A slower connection takes longer than the compiler.
	stallTimeout = 20 * time.Second
	stallBytes   = 128 << 10
)

// ParseMode parses a value of ModeVariable. Empty is ModeAuto.
func ParseMode(value string) (Mode, error) {
	switch mode := Mode(value); mode {
	case "":
		return ModeAuto, nil
	case ModeAuto, ModeDownload, ModeBuild:
		return mode, nil
	}
	return "", fmt.Errorf("cannot use %s=%q: set it to %s, %s or %s", ModeVariable, value, ModeAuto, ModeDownload, ModeBuild)
}

// FromEnvironment returns a Downloader with what the environment variables say.
func FromEnvironment() (*Downloader, error) {
	mode, err := ParseMode(os.Getenv(ModeVariable))
	if err != nil {
		return nil, err
	}
	releases, err := parseReleases(embeddedReleases)
	if err != nil {
		return nil, err
	}
	pins, err := environmentPins()
	if err != nil {
		return nil, err
	}
	mirror, err := parseMirror(os.Getenv(MirrorVariable))
	if err != nil {
		return nil, err
	}
	return &Downloader{
		mode: mode, releases: releases, pins: pins, mirror: mirror, client: newClient(),
		probeTimeout: probeTimeout, stallTimeout: stallTimeout, limit: maxFile,
	}, nil
}

func environmentPins() (Pins, error) {
	file := os.Getenv(PinsVariable)
	if file == "" {
		return ParsePins(embeddedPins)
	}
	pins, err := ReadPins(file)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s=%q: %w", PinsVariable, file, err)
	}
	return pins, nil
}

func parseMirror(value string) (*url.URL, error) {
	if value == "" {
		return nil, nil //nolint:nilnil // no mirror is a valid choice
	}
	mirror, err := url.Parse(value)
	if err != nil || mirror.Host == "" || (mirror.Scheme != secure && mirror.Scheme != "http") {
		// The value may hold a password, so it is not repeated.
		return nil, fmt.Errorf("cannot use the address in %s: set it to one like https://mirror.example.org/releases", MirrorVariable)
	}
	return mirror, nil
}

func newClient() *http.Client {
	return &http.Client{CheckRedirect: followSafely, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		// Some servers mark a .tar.gz as compressed content. It must arrive as it is.
		DisableCompression: true,
	}}
}

// followSafely is the standard policy, which ends after ten redirects, and never leaves TLS.
func followSafely(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: it redirects more than ten times", ErrNotServed)
	}
	if via[len(via)-1].URL.Scheme == secure && req.URL.Scheme != secure {
		return fmt.Errorf("%w: it redirects from https to %s", ErrNotServed, req.URL.Scheme)
	}
	return nil
}
