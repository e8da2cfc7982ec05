# Twice as much with every turn.
food=x
while :; do food=$food$food; done
