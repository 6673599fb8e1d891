// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
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

// renewBefore is how long before their end temporary keys are renewed, as pgBackRest does.
const renewBefore = 5 * time.Minute

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
	i := c.Identity
	assume := stscreds.NewWebIdentityRoleProvider(
		sts.New(sts.Options{Region: c.Region, BaseEndpoint: aws.String("https://" + i.STS), HTTPClient: &once}),
		i.Role, stscreds.IdentityTokenFile(i.TokenFile), func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = "capstan" },
	)
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		keys, err := assume.Retrieve(ctx)
		if err != nil {
			return aws.Credentials{}, i.refusal(err)
		}
		return keys, nil
	}), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
}

// word that can be the code of an error.
var word = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

// refusal of the role. Of an answer only its status and the code of its error are quoted: a report changes only when a fact does.
func (i *Identity) refusal(err error) error {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) {
		return fmt.Errorf("cannot take the role %s: %w", i.Role, err)
	}
	why := "without keys"
	var api smithy.APIError
	if errors.As(err, &api) && word.MatchString(api.ErrorCode()) {
		why = "and " + api.ErrorCode()
	}
	return fmt.Errorf("cannot take the role %s: %s answers with HTTP status %d %s: see its trust policy", i.Role, i.STS, answer.HTTPStatusCode(), why)
}
