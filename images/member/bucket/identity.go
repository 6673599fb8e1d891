// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/capstan-dev/capstan/images/member/web"
)

// An Identity opens a bucket as a role, with a token of the pod's ServiceAccount, which Kubernetes renews in its file.
type Identity struct {
	Role, TokenFile string
	// STS is the host that gives keys of the role for a while.
	STS string
}

// OwnIdentity of this pod, in the variables that clients of AWS know. Nil for none.
func OwnIdentity() *Identity {
	i := &Identity{Role: os.Getenv("AWS_ROLE_ARN"), TokenFile: os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")}
	if i.Role == "" || i.TokenFile == "" {
		return nil
	}
	return i
}

// Hosts of AWS, and regions. The name of the STS is made of both.
var (
	amazon = regexp.MustCompile(`\.amazonaws\.(com|com\.cn|eu)$`)
	region = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
)

// at the STS of a bucket's region. The token goes to AWS and to no other host, which could take the role with it.
func (i *Identity) at(c Connection) (*Identity, error) {
	domain := amazon.FindString(c.Host)
	if domain == "" || c.Port != "443" {
		return nil, &NotReadyError{Message: fmt.Sprintf("the connection Secret of the bucket has no keys, and a role opens buckets of AWS only, not of %s: "+
			"put keys into the Secret", c.Host)}
	}
	if !region.MatchString(c.Region) {
		return nil, &NotReadyError{Message: fmt.Sprintf("the region %q of the bucket's connection Secret is none: correct it", c.Region)}
	}
	return &Identity{Role: i.Role, TokenFile: i.TokenFile, STS: "sts." + c.Region + domain}, nil
}

const (
	// renewBefore is how long before their end temporary keys are renewed, as pgBackRest does.
	renewBefore = 5 * time.Minute
	// limitOfSTS is how long one call of the STS may take.
	limitOfSTS = 30 * time.Second
)

// Keys that requests to the bucket are signed with: the Secret's, or temporary ones, which a client gets and renews.
func (c Connection) Keys(client *http.Client) aws.CredentialsProvider {
	if c.Identity == nil {
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: c.Key, SecretAccessKey: c.Secret, SessionToken: c.Token}, nil
		})
	}
	// The token goes nowhere else.
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var (
		mu  sync.Mutex
		has aws.Credentials
	)
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Until(has.Expires) > renewBefore {
			return has, nil
		}
		keys, err := c.Identity.assume(ctx, &once)
		if err == nil {
			has = keys
		}
		return keys, err
	})
}

// assumed is the answer of an STS.
type assumed struct {
	Key     string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
	Secret  string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
	Token   string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
	Expires time.Time `xml:"AssumeRoleWithWebIdentityResult>Credentials>Expiration"`
	// Code of an error.
	Code string `xml:"Error>Code"`
}

// assume the role.
func (i *Identity) assume(ctx context.Context, client *http.Client) (aws.Credentials, error) {
	token, err := os.ReadFile(i.TokenFile)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("cannot read the token for the role %s: %w", i.Role, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limitOfSTS)
	defer cancel()
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {i.Role}, "RoleSessionName": {"capstan"},
		"WebIdentityToken": {strings.TrimSpace(string(token))},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+i.STS+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("cannot ask %s for the role: %w", i.STS, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, err := web.Do(client, req)
	if err != nil {
		return aws.Credentials{}, err
	}
	var a assumed
	if err := xml.Unmarshal(body, &a); err != nil || status != http.StatusOK {
		return aws.Credentials{}, fmt.Errorf("%s refuses the role %s: %s (%d): see its trust policy", i.STS, i.Role, code(a), status)
	}
	if a.Key == "" || a.Secret == "" || a.Token == "" || a.Expires.IsZero() {
		return aws.Credentials{}, errors.New("the answer of " + i.STS + " has no keys")
	}
	return aws.Credentials{AccessKeyID: a.Key, SecretAccessKey: a.Secret, SessionToken: a.Token, CanExpire: true, Expires: a.Expires}, nil
}

// code of an error, which is one word.
func code(a assumed) string {
	if word.MatchString(a.Code) {
		return a.Code
	}
	return "it does not say why"
}

var word = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
