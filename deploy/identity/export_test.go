package identity

const (
	UserPayload = userPayload
	UserSubs    = userSubs
)

var Made = create
