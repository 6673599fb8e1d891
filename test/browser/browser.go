// SPDX-License-Identifier: Apache-2.0

// Package browser drives a real Chromium without a window through pages, for tests.
package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Variable names the folder of the browser, which hack/programs installs.
const Variable = "CAPSTAN_PROGRAM_CHROMIUM"

// stepTimeout of one step of a journey, on a busy machine.
const stepTimeout = time.Minute

// A Browser has one tab.
type Browser struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // The library keeps the tab in it.
	base string
	ran  []string
	// clicks and typed characters of the person that the test plays. Addresses are not counted, nor is what is pasted.
	clicks, typed int
}

// Start a browser for the pages below an address. A test without a browser fails.
func Start(t *testing.T, base string) *Browser {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		t.Fatalf("%s is not set: run this test by make, or evaluate what `go -C hack run ./programs chromium` prints", Variable)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(filepath.Join(dir, "chromium-headless-shell")),
		// Tests run as root, in networks without a way out.
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(stepTimeout), chromedp.WindowSize(1280, 900))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &Browser{t: t, ctx: ctx, base: base}
	t.Cleanup(func() { t.Logf("the journey took %d clicks and %d typed characters", b.clicks, b.typed) })
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.ran = append(b.ran, "dialog "+e.Message)
		case *cdpruntime.EventExceptionThrown:
			b.ran = append(b.ran, fmt.Sprintf("exception %+v", e.ExceptionDetails))
		}
	})
	if err != nil {
		t.Fatalf("cannot start the browser: %v", err)
	}

	return b
}

// Do steps within a minute.
func (b *Browser) Do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.Text())
	}
}

// Open a page by its path.
func (b *Browser) Open(path string) {
	b.t.Helper()
	b.Do("open "+path, chromedp.Navigate(b.base+path))
}

// Fill an input by its id.
func (b *Browser) Fill(id, text string) {
	b.t.Helper()
	b.typed += len(text)
	b.Do("find "+id, chromedp.WaitReady(by(id)))
	// The driver's own way to clear it changes nothing that a script has written there.
	Value[bool](b, fmt.Sprintf("(document.getElementById(%q).value = '', true)", id))
	b.Do("fill "+id, chromedp.SendKeys(by(id), text))
}

// Choose an option by its id.
func (b *Browser) Choose(id, option string) {
	b.t.Helper()
	b.clicks++
	b.Do("choose "+id, chromedp.SetValue(by(id), option))
	Value[bool](b, fmt.Sprintf("document.getElementById(%q).dispatchEvent(new Event('input', {bubbles: true}))", id))
}

// Set the text of an input at once, as a paste does.
func (b *Browser) Set(id, text string) {
	b.t.Helper()
	b.Choose(id, text)
}

// Click an element by its id, and wait for the page that follows.
func (b *Browser) Click(id string) {
	b.t.Helper()
	b.Press(string(by(id)))
}

// Press an element by a selector, and wait for the page that follows.
func (b *Browser) Press(selector string) {
	b.t.Helper()
	b.clicks++
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.t.Fatalf("press %s: %v\n%s", selector, err, b.Text())
	}
}

// Ids may have dots, which selectors give a meaning.
func by(id string) chromedp.CSS { return chromedp.CSS(fmt.Sprintf("[id=%q]", id)) }

// Text that a person sees.
func (b *Browser) Text() string {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return fmt.Sprintf("the page cannot be read: %v", err)
	}

	return text
}

// Value of an expression.
func Value[T any](b *Browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.Text())
	}

	return v
}

// Sees what has to be on the page.
func (b *Browser) Sees(words ...string) {
	b.t.Helper()
	text := b.Text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("want %q on the page:\n%s", w, text)
		}
	}
}

// SeesNot what must not be on the page.
func (b *Browser) SeesNot(words ...string) {
	b.t.Helper()
	html := Value[string](b, "document.documentElement.outerHTML")
	for _, w := range words {
		if strings.Contains(html, w) {
			b.t.Errorf("%q must not be on the page:\n%s", w, b.Text())
		}
	}
}

// Until an expression is true on the page, which is not loaded again.
func (b *Browser) Until(limit time.Duration, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit+stepTimeout)
	defer cancel()
	began := time.Now()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && ok {
			b.t.Logf("%s: after %s", expression, time.Since(began).Round(100*time.Millisecond))

			return
		}
		if time.Since(began) > limit {
			b.t.Fatalf("not within %s: %s: %v\n%s", limit, expression, err, b.Text())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Forget the cookies, as if the login had ended.
func (b *Browser) Forget() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		b.t.Fatalf("cannot forget the cookies: %v", err)
	}
}

// Ran are the dialogs that scripts of a page opened, and their errors.
func (b *Browser) Ran() []string { return b.ran }

// Screenshot of the page, where CAPSTAN_SCREENSHOTS names a folder.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	b.keep(name, chromedp.FullScreenshot(100))
}

// ScreenshotOf an element of the page, where CAPSTAN_SCREENSHOTS names a folder.
func (b *Browser) ScreenshotOf(id, name string) {
	b.t.Helper()
	b.keep(name, chromedp.Screenshot(by(id)))
}

func (b *Browser) keep(name string, picture chromedp.Action[[]byte]) {
	b.t.Helper()
	dir := os.Getenv("CAPSTAN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, picture)
	if err != nil {
		b.t.Fatalf("cannot take a screenshot: %v", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Cost of the page.
type Cost struct {
	// Answer is when the first byte was there, and Paint when the first content was, in ms.
	Answer float64 `json:"answer"`
	Paint  float64 `json:"paint"`

	// Sent is the bytes of the page and its files, and Bytes what they are without compression.
	Sent  float64 `json:"sent"`
	Bytes float64 `json:"bytes"`
}

// Cost of the present page, loaded without a cache.
func (b *Browser) Cost(path string) Cost {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		b.t.Fatalf("cannot do without a cache: %v", err)
	}
	b.Open(path)
	b.Until(stepTimeout, "performance.getEntriesByName('first-contentful-paint').length > 0")
	cost := Value[Cost](b, `(() => {
		const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
		return {
			answer: all[0].responseStart,
			paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
			sent: all.reduce((n, e) => n + e.encodedBodySize, 0),
			bytes: all.reduce((n, e) => n + e.decodedBodySize, 0),
		};
	})()`)
	if _, err := chromedp.Call(b.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{}); err != nil {
		b.t.Fatalf("cannot use a cache again: %v", err)
	}
	b.t.Logf("%s: first byte after %.0f ms, first content after %.0f ms, %.0f kB sent, %.0f kB without compression",
		path, cost.Answer, cost.Paint, cost.Sent/1000, cost.Bytes/1000)

	return cost
}

// Wait for the value of a promise.
func Wait[T any](b *Browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.Text())
	}

	return v
}
